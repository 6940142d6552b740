// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/parameters.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weight_sync::fakes {
namespace {

constexpr int64_t kAlignment = 64;

// A 64-bit mixer (splitmix64, Steele, Lea and Flood 2014): good enough bits from a counter.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t Repeat(uint64_t pattern, int bits) {
  for (; bits < 64; bits *= 2) pattern |= pattern << bits;
  return pattern;
}

// Which bits of a 64-bit word are random, and which are set, so that every element is finite.
struct FillPattern {
  uint64_t random;
  uint64_t set;
};

FillPattern FillPatternOf(refit::DType dtype) {
  switch (dtype) {
    case refit::DType::kBool:
      return {Repeat(0x01, 8), 0};
    case refit::DType::kF8E5M2:
    case refit::DType::kF8E5M2Fnuz:
      return {Repeat(0x83, 8), Repeat(0x38, 8)};
    case refit::DType::kF8E4M3:
    case refit::DType::kF8E4M3Fnuz:
      return {Repeat(0x87, 8), Repeat(0x30, 8)};
    case refit::DType::kF8E8M0:
      return {Repeat(0x3F, 8), Repeat(0x40, 8)};
    case refit::DType::kBF16:
      return {Repeat(0x80FF, 16), Repeat(0x3F00, 16)};
    case refit::DType::kF16:
      return {Repeat(0x83FF, 16), Repeat(0x3800, 16)};
    case refit::DType::kF32:
    case refit::DType::kC64:
      return {Repeat(0x807FFFFF, 32), Repeat(0x3F000000, 32)};
    case refit::DType::kF64:
      return {0x800FFFFFFFFFFFFFu, 0x3FE0000000000000u};
    default:
      return {~uint64_t{0}, 0};
  }
}

// The lowest bit of every element always flips; of the wide types two more may.
struct StepPattern {
  uint64_t always;
  uint64_t maybe;
};

StepPattern StepPatternOf(refit::DType dtype) {
  // Four bits apart: at least one bit in each element of four or six bits, wherever it starts.
  if (refit::IsSubByte(dtype)) return {Repeat(0x11, 8), 0};
  const int bits = static_cast<int>(8 * refit::StorageElementBytes(dtype));
  const int part = dtype == refit::DType::kC64 ? 32 : bits;
  return {Repeat(1, part), part >= 16 ? Repeat(6, part) : 0};
}

// Applies `update(word, index)` to a tensor's memory as 64-bit words; the last may be partial.
template <typename Update>
void UpdateWords(const refit::MutableTensorView& view, Update update) {
  std::byte* const data = view.data();
  const int64_t bytes = view.num_bytes();
  for (int64_t at = 0; at < bytes; at += 8) {
    const size_t count = static_cast<size_t>(std::min<int64_t>(8, bytes - at));
    uint64_t word = 0;
    std::memcpy(&word, data + at, count);
    word = update(word, static_cast<uint64_t>(at) / 8);
    std::memcpy(data + at, &word, count);
  }
}

int64_t AvailableBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (meminfo >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(meminfo, unit);
  }
  return -1;
}

}  // namespace

absl::StatusOr<Parameters> Parameters::Create(const refit::RefitInfo& info) {
  int64_t bytes = 0;
  std::vector<int64_t> offsets;
  for (const refit::TensorSpec& tensor : info.tensors()) {
    offsets.push_back(bytes);
    bytes += (tensor.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  const size_t mapped = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  const int64_t available = AvailableBytes();
  void* memory = MAP_FAILED;
  if (available < 0 || bytes <= available) {
    memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("parameters of ", bytes,
                                                     " bytes do not fit the ", available,
                                                     " bytes of memory that are available"));
  }
  ::madvise(memory, mapped, MADV_HUGEPAGE);  // a hint only
  Parameters parameters(info, static_cast<std::byte*>(memory), mapped);
  for (int t = 0; t < info.size(); ++t) {
    parameters.views_.push_back(refit::MutableTensorView::Contiguous(
        parameters.memory_ + offsets[static_cast<size_t>(t)], info[t].dtype, info[t].shape));
  }
  parameters.FillBytes(0);
  return parameters;
}

Parameters::Parameters(Parameters&& other) noexcept
    : info_(std::move(other.info_)),
      views_(std::move(other.views_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_) {}

Parameters::~Parameters() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

std::vector<refit::HfParameter> Parameters::AsHf() const {
  std::vector<refit::HfParameter> parameters;
  for (int t = 0; t < info_.size(); ++t) parameters.push_back({info_[t].name, view(t)});
  return parameters;
}

void Parameters::FillBytes(uint8_t value) { std::memset(memory_, value, bytes_); }

void Parameters::FillSeeded(uint64_t seed) {
  for (int t = 0; t < info_.size(); ++t) {
    const FillPattern pattern = FillPatternOf(info_[t].dtype);
    const uint64_t base = Mix(seed * 0x10001 + static_cast<uint64_t>(t));
    UpdateWords(view(t), [&](uint64_t, uint64_t index) {
      return (Mix(base + index) & pattern.random) | pattern.set;
    });
  }
}

void Parameters::Perturb(uint64_t seed, int64_t step) {
  for (int t = 0; t < info_.size(); ++t) {
    const StepPattern pattern = StepPatternOf(info_[t].dtype);
    const uint64_t base = Mix(Mix(seed ^ static_cast<uint64_t>(step)) + static_cast<uint64_t>(t));
    UpdateWords(view(t), [&](uint64_t word, uint64_t index) {
      return word ^ pattern.always ^ (Mix(base + index) & pattern.maybe);
    });
  }
}

}  // namespace weight_sync::fakes
