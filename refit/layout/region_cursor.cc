// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_cursor.h"

#include <algorithm>

namespace weight_sync::refit {

RegionCursor::RegionCursor(const Region& region, const Shape& a,
                           absl::Span<const int64_t> b_strides)
    : region_(&region) {
  std::array<int64_t, Shape::kMaxRank> a_stride = {}, b_stride = {};
  int64_t stride = 1;
  for (int dim = a.rank() - 1; dim >= 0; --dim) {
    a_stride[static_cast<size_t>(dim)] = stride;
    stride *= a[dim];
    a_place_ += region.a.begin[dim] * a_stride[static_cast<size_t>(dim)];
  }
  std::copy(b_strides.begin(), b_strides.end(), b_stride.begin());
  for (int dim = 0; dim < region.b.rank; ++dim) {
    b_index_[static_cast<size_t>(dim)] = region.b.begin[dim];
    b_offset_ += region.b.begin[dim] * b_stride[static_cast<size_t>(dim)];
  }
  for (int axis = 0; axis < region.axes; ++axis) {
    const size_t i = static_cast<size_t>(axis);
    a_step_[i] = region.a.step[i] * a_stride[static_cast<size_t>(region.a.dim[i])];
    b_step_[i] = region.b.step[i] * b_stride[static_cast<size_t>(region.b.dim[i])];
  }
}

}  // namespace weight_sync::refit
