// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GuardedMemory: bytes that nobody can run out of unnoticed, at either end and by whatever
// instruction: the one side touches a page that must not be accessed. For tests.
//
//   GuardedMemory memory(100, GuardedMemory::kEnd);   // memory.data()[100] is a fault

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_GUARDED_MEMORY_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_GUARDED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "absl/log/check.h"

namespace weight_sync::refit {

class GuardedMemory {
 public:
  enum Side { kBegin, kEnd };  // which one is a fault from the first byte on

  GuardedMemory(int64_t bytes, Side side) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t inside = (static_cast<size_t>(bytes) + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    void* const memory =
        ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
    CHECK(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    CHECK(inside == 0 || ::mprotect(memory_ + page, inside, PROT_READ | PROT_WRITE) == 0);
    data_ = memory_ + page + (side == kEnd ? inside - static_cast<size_t>(bytes) : 0);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { ::munmap(memory_, mapped_); }

  std::byte* data() const { return data_; }

 private:
  std::byte* memory_;
  size_t mapped_;
  std::byte* data_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_GUARDED_MEMORY_H_
