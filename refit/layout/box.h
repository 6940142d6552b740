// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Box: an axis-aligned part of a tensor, in storage elements (StorageShape in
// refit/tensor/shape.h). The unit in which a refit moves bytes: a whole tensor, a cut of a ring
// slot, a shard. A value without heap memory; thread-safe as such.
//
//   Box box = Box::Whole({4, 6});          // begin [0, 0], size [4, 6]
//   std::vector<Box> parts;
//   CutFlatRange({4, 6}, 3, 20, parts);    // elements 3..19 of the row-major order:
//                                          // [0, 3]+[1, 3], [1, 0]+[2, 6], [3, 0]+[1, 2]

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_BOX_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_BOX_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct Box {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> begin = {};
  std::array<int64_t, Shape::kMaxRank> size = {};

  static Box Whole(const Shape& shape);

  int64_t num_elements() const;
  // Of the box by itself.
  Shape shape() const;
  // The row-major number of its first element in a tensor of this shape.
  int64_t FirstElementIn(const Shape& tensor) const;
  std::string ToString() const;
  friend bool operator==(const Box& a, const Box& b) {
    return a.rank == b.rank && a.begin == b.begin && a.size == b.size;
  }
  friend bool operator!=(const Box& a, const Box& b) { return !(a == b); }
};

// Appends the fewest boxes that hold the elements [begin, end) of a tensor of this shape, counted
// in row-major order; each box is contiguous in that order and they follow one another in it. At
// most 2 * rank - 1 boxes (1 for a scalar). Needs 0 <= begin <= end <= shape.num_elements(); an
// empty range appends none.
void CutFlatRange(const Shape& shape, int64_t begin, int64_t end, std::vector<Box>& out);

// Writes `bytes`, the box's elements in row-major order, into `tensor` where the box lies. The
// tensor is contiguous and the box inside its StorageShape. For engines that keep HF tensors.
void StoreBox(const std::byte* bytes, const Box& box, const MutableTensorView& tensor);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_BOX_H_
