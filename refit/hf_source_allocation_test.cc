// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What a sync allocates. Every allocation of this process is counted: malloc and its kin are
// replaced here, and operator new of the C++ library calls malloc.

#include <malloc.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gtest/gtest.h"
#include "refit/device/device.h"
#include "refit/hf_source.h"
#include "refit/layout/copy_program.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/tensor/dtype.h"
#include "refit/testing/random_tensor.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

// glibc's own, under the names by which a replacement may call them.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}  // extern "C"

namespace weight_sync::refit {
namespace {

TEST(AllocationCountTest, SeesEveryKindOfAllocation) {
  const auto counted = [](auto allocate) {
    const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
    const int64_t before = allocations.load();
    allocate();
    return allocations.load() - before;
  };
  // Kept in a volatile, so that no compiler leaves the pair of allocation and release out.
  void* volatile memory = nullptr;
  EXPECT_EQ(counted([&] { free(memory = malloc(7)); }), 1);
  EXPECT_EQ(counted([&] { free(memory = calloc(7, 7)); }), 1);
  EXPECT_EQ(counted([&] { free(memory = aligned_alloc(64, 64)); }), 1);
  EXPECT_EQ(counted([&] { ::operator delete(memory = ::operator new(7)); }), 1);
  EXPECT_EQ(counted([] {
              std::vector<int> grown(7);
              grown.resize(700);
            }),
            2);
  EXPECT_EQ(counted([] {}), 0);
}

int64_t AllocationsOfTwoSyncs(int tensors, int64_t slot_bytes = 4096, int threads = 1) {
  std::mt19937 rng(1);
  std::vector<testing::RandomTensor> storage;
  std::vector<HfParameter> parameters;
  for (int t = 0; t < tensors; ++t) {
    storage.emplace_back(kAllDTypes[rng() % kAllDTypes.size()], testing::RandomShape(rng, 3),
                         testing::kAllViewKinds[rng() % testing::kAllViewKinds.size()], rng);
  }
  for (const testing::RandomTensor& tensor : storage) {
    parameters.push_back({absl::StrCat("t", parameters.size()), tensor.view()});
  }
  StepGate gate;
  auto source = HfSource::Create(std::move(parameters), &gate).value();
  CopyOptions options;
  options.threads = threads;
  source->UseCopyOptions(options);
  const auto buckets = Pack(source->info(), {slot_bytes, 64}).value();
  auto program = source->Compile(buckets).value();
  std::vector<std::byte> slot(static_cast<size_t>(slot_bytes));
  Stream stream = Stream::Host();
  bool good = true;

  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  const int64_t before = allocations.load();
  for (int version = 0; version < 2; ++version) {  // also the first
    const auto guard = program->Begin(version, scope);
    for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
      const auto filled = program->Fill(b, {slot.data(), slot_bytes, Device::Host()}, stream);
      good = good && filled.ok() && filled->Wait(base::Deadline::After(absl::Seconds(1))).ok();
    }
    good = good && guard.ok() && guard->Unchanged().ok();
  }
  const int64_t made = allocations.load() - before;
  EXPECT_TRUE(good);
  return made;
}

TEST(HfSourceAllocationTest, ASyncAllocatesItsGuardAndNothingElseHoweverManyTensors) {
  constexpr int kGuards = 2;  // one a sync
  EXPECT_EQ(AllocationsOfTwoSyncs(1), kGuards);
  EXPECT_EQ(AllocationsOfTwoSyncs(100), kGuards);
  EXPECT_EQ(AllocationsOfTwoSyncs(5'000), kGuards);
  EXPECT_EQ(AllocationsOfTwoSyncs(5'000, 1 << 20, /*threads=*/3), kGuards);
}

}  // namespace
}  // namespace weight_sync::refit
