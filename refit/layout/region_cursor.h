// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RegionCursor: the pairs of a region one after another, in the row-major order of its A side. For
// those to whom clarity matters more than speed: deep verification walks a map by it, and shares no
// code with copy programs.
//
//   RegionCursor cursor(region, hf_shape, view.strides());
//   for (int64_t i = 0; i < region.num_elements(); ++i, cursor.Advance()) {
//     hf[cursor.a_place()] = data[cursor.b_offset()];
//   }

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_REGION_CURSOR_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_REGION_CURSOR_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "refit/layout/region.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

class RegionCursor {
 public:
  // The region, which is borrowed, has at least one pair. `b_strides`, in elements, are B's; without
  // them there is no b_offset().
  RegionCursor(const Region& region, const Shape& a, absl::Span<const int64_t> b_strides = {});

  // The element's row-major number in A.
  int64_t a_place() const { return a_place_; }
  // Its indices in B, and how many elements from B's first it lies.
  const std::array<int64_t, Shape::kMaxRank>& b_index() const { return b_index_; }
  int64_t b_offset() const { return b_offset_; }

  // To the next one; behind the last comes the first.
  void Advance() {
    for (int axis = region_->axes - 1; axis >= 0; --axis) {
      const size_t i = static_cast<size_t>(axis);
      Move(i, 1);
      if (++index_[i] < region_->size[i]) return;
      Move(i, -region_->size[i]);
      index_[i] = 0;
    }
  }

 private:
  void Move(size_t axis, int64_t count) {
    a_place_ += count * a_step_[axis];
    b_offset_ += count * b_step_[axis];
    b_index_[static_cast<size_t>(region_->b.dim[axis])] += count * region_->b.step[axis];
  }

  const Region* region_;
  int64_t a_place_ = 0;
  int64_t b_offset_ = 0;
  std::array<int64_t, Shape::kMaxRank> b_index_ = {};
  std::array<int64_t, Region::kMaxAxes> a_step_ = {};
  std::array<int64_t, Region::kMaxAxes> b_step_ = {};
  std::array<int64_t, Region::kMaxAxes> index_ = {};
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_REGION_CURSOR_H_
