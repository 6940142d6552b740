// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "refit/layout/convert.h"
#include "refit/layout/kernels/levels.h"

namespace weight_sync::refit {
namespace {

void Copy(const std::byte* src, int64_t src_row, int64_t rows, int64_t count, std::byte* dst,
          int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(dst + r * dst_row, src + r * src_row, static_cast<size_t>(count));
  }
}

template <Conversion kConversion, int64_t kSrc, int64_t kDst>
void Convert(const std::byte* src, int64_t src_row, int64_t rows, int64_t count, std::byte* dst,
             int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count; ++i) {
      ConvertElement(kConversion, src + r * src_row + i * kSrc, 0, dst + r * dst_row + i * kDst);
    }
  }
}

template <size_t kElement>
void Transpose(const std::byte* tile, int64_t rows, int64_t columns, std::byte* dst,
               int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(dst + r * dst_row + c * static_cast<int64_t>(kElement),
                  tile + c * kTileBytes + r * static_cast<int64_t>(kElement), kElement);
    }
  }
}

void Fence() {}  // nothing goes past the caches

}  // namespace

const Kernels kPortableKernels = {
    Copy,
    Convert<Conversion::kF32ToBF16, 4, 2>,
    Convert<Conversion::kBF16ToF32, 2, 4>,
    Copy,
    Convert<Conversion::kF32ToBF16, 4, 2>,
    Convert<Conversion::kBF16ToF32, 2, 4>,
    {Transpose<1>, Transpose<2>, Transpose<4>, Transpose<8>},
    {Transpose<1>, Transpose<2>, Transpose<4>, Transpose<8>},
    Fence,
};

}  // namespace weight_sync::refit
