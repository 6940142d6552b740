// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The changes of value that a refit may make: float32 masters to bfloat16, and back on the way in.
//
// To bfloat16 rounds to nearest, ties to even, as IEEE 754 and the trainers' own casts do. A NaN
// stays a NaN with its sign and what fits of its payload. So bfloat16 -> float32 -> bfloat16 is the
// identity for all 65536 patterns. Pure functions.
//
//   FloatToBFloat16(1.00390625f);   // 0x3f80: halfway between two, to the even one

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_CONVERT_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

enum class Conversion : uint8_t { kNone, kF32ToBF16, kBF16ToF32 };

// InvalidArgument for any other pair of different types.
absl::StatusOr<Conversion> ConversionBetween(DType from, DType to);

inline uint16_t FloatToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t upper = bits >> 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN, which rounding could turn into infinity
    return static_cast<uint16_t>((upper & 0x7fu) != 0 ? upper : upper | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + (upper & 1u)) >> 16);
}

inline float BFloat16ToFloat(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

// One element from memory to memory, neither of which need be aligned. `bytes` is the size of the
// source's element where nothing is converted.
inline void ConvertElement(Conversion conversion, const std::byte* src, int64_t bytes,
                           std::byte* dst) {
  if (conversion == Conversion::kNone) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
  } else if (conversion == Conversion::kF32ToBF16) {
    float value;
    std::memcpy(&value, src, sizeof(value));
    const uint16_t rounded = FloatToBFloat16(value);
    std::memcpy(dst, &rounded, sizeof(rounded));
  } else {
    uint16_t value;
    std::memcpy(&value, src, sizeof(value));
    const float wide = BFloat16ToFloat(value);
    std::memcpy(dst, &wide, sizeof(wide));
  }
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_CONVERT_H_
