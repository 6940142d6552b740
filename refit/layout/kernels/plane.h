// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Plane: the two dimensions of a copy that a kernel moves at once. What is not in a plane is a loop
// around it (strided_copy.h).
//
//   // 4096 x 1024 elements of 2 bytes, transposed.
//   Plane plane{1024, 4096, /*src_row=*/2, /*src_column=*/2048, /*dst_row=*/8192, /*dst_column=*/2};
//   KernelFor(PlaneKind::kTranspose, 2, Conversion::kNone)(kernels, plane, stream, src, dst);

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_PLANE_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_PLANE_H_

#include <cstddef>
#include <cstdint>

#include "refit/layout/convert.h"
#include "refit/layout/kernels/kernels.h"

namespace weight_sync::refit {

// Bytes from one row or column to the next. Nothing is empty.
struct Plane {
  int64_t rows;
  int64_t columns;
  int64_t src_row;
  int64_t src_column;
  int64_t dst_row;
  int64_t dst_column;
};

enum class PlaneKind : uint8_t {
  kRows,       // columns lie one after another on both sides
  kTranspose,  // columns do in the destination, rows in the source
  kElements,   // anything: an element at a time
};

// `stream`: write past the caches where that pays; Kernels::fence() before anybody is told.
using PlaneKernel = void (*)(const Kernels& kernels, const Plane& plane, bool stream,
                             const std::byte* src, std::byte* dst);

// `element` is 1, 2, 4 or 8, or for rows that are not converted any number: it is not asked for
// where elements are converted.
PlaneKernel KernelFor(PlaneKind kind, int64_t element, Conversion conversion);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_PLANE_H_
