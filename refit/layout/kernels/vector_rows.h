// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows that are the same for vectors of any width. Included once by the file of a level,
// which defines WS_LEVEL, the attribute of functions that use its instructions, before.
//
// An operation on rows, Op, has the sizes kSrc and kDst of its elements in bytes, and
//
//   kConversion, kElements, StoreVector   kElements of them as one vector of the destination, and what
//                                         to do with the few that are left
//   kRows                                 the operation on rows through the caches
//   StreamLine                            one line of the destination past the caches

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_VECTOR_ROWS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_VECTOR_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "refit/layout/convert.h"
#include "refit/layout/kernels/kernels.h"

namespace weight_sync::refit {

template <class Op>
WS_LEVEL void ConvertRows(const std::byte* src, int64_t src_row, int64_t rows, int64_t count,
                          std::byte* dst, int64_t dst_row) {
  for (int64_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
    int64_t i = 0;
    for (; i + Op::kElements <= count; i += Op::kElements) {
      Op::StoreVector(src + i * Op::kSrc, dst + i * Op::kDst);
    }
    for (; i < count; ++i) {
      ConvertElement(Op::kConversion, src + i * Op::kSrc, 0, dst + i * Op::kDst);
    }
  }
}

// Processors guess what is read next within a page; four streams from four pages keep the memory
// busier than one.
template <class Op>
WS_LEVEL void StreamRows(const std::byte* src, int64_t src_row, int64_t rows, int64_t count,
                         std::byte* dst, int64_t dst_row) {
  constexpr int64_t kLine = kLineBytes / Op::kDst;
  if (rows > 1 && dst_row % kLineBytes != 0) {
    for (int64_t r = 0; r < rows; ++r) {
      StreamRows<Op>(src + r * src_row, 0, 1, count, dst + r * dst_row, 0);
    }
    return;
  }
  const int64_t past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % kLineBytes);
  int64_t head = (kLineBytes - past_line) % kLineBytes / Op::kDst;
  if (past_line % Op::kDst != 0 || head > count) head = count;
  const int64_t end = head + (count - head) / kLine * kLine;
  if (head > 0) Op::kRows(src, src_row, rows, head, dst, dst_row);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const std::byte* const from = src + r * src_row;
    std::byte* const to = dst + r * dst_row;
    for (int64_t i = head; i < end; i += kLine) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) {
        Op::StreamLine(from + j * src_row + i * Op::kSrc, to + j * dst_row + i * Op::kDst);
      }
    }
  }
  for (; r < rows; ++r) {
    for (int64_t i = head; i < end; i += kLine) {
      Op::StreamLine(src + r * src_row + i * Op::kSrc, dst + r * dst_row + i * Op::kDst);
    }
  }
  if (end < count) {
    Op::kRows(src + end * Op::kSrc, src_row, rows, count - end, dst + end * Op::kDst, dst_row);
  }
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_VECTOR_ROWS_H_
