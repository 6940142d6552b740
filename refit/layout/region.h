// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Region: elements of tensor A paired one to one with elements of tensor B. Two axis patterns with
// the same axes relate two tensors; each choice of their indices (an expert, a layer) is a region.
//
// A region runs over axes. On each side an axis moves along one dimension, `step` indices at a time,
// from where the region begins there. Values without heap memory; templates are immutable, so
// thread-safe.
//
//   // One expert of a stacked, transposed projection: HF [M, H] against a trainer's [E, H, M].
//   WS_ASSIGN_OR_RETURN(
//       RegionTemplate expert,
//       RegionTemplate::Create(*AxisPattern::Parse("m h"), *AxisPattern::Parse("{e} h m"),
//                              {{"e", 128}, {"h", 2048}, {"m", 768}}));
//   expert.a_shape();                     // [768, 2048]
//   expert.index_names();                 // {"e"}
//   Region third = expert.At({3});        // B's elements [3, :, :]

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_REGION_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_REGION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/layout/axis_pattern.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

struct Region {
  static constexpr int kMaxAxes = Shape::kMaxRank;

  struct Side {
    int rank = 0;
    std::array<int64_t, Shape::kMaxRank> begin = {};  // by dimension
    std::array<int8_t, kMaxAxes> dim = {};            // by axis
    std::array<int64_t, kMaxAxes> step = {};          // by axis, in indices of `dim`
  };

  int axes = 0;  // in the row-major order of A
  std::array<int64_t, kMaxAxes> size = {};
  Side a;
  Side b;

  int64_t num_elements() const;

  // The same pairs with A and B exchanged, axes in the row-major order of the new A.
  Region Inverted() const;
};

// Sizes of axes, and how many places an index chooses from.
using AxisSizes = absl::flat_hash_map<std::string, int64_t>;

class RegionTemplate {
 public:
  // InvalidArgument, with both patterns, when an axis is on one side only, or a name has no size or
  // one below 1.
  static absl::StatusOr<RegionTemplate> Create(const AxisPattern& a, const AxisPattern& b,
                                               const AxisSizes& sizes);

  // Indices of either side, in order of appearance. At() wants one value for each.
  const std::vector<std::string>& index_names() const { return index_names_; }
  Region At(absl::Span<const int64_t> indices) const;

  // The shapes that the patterns describe, without padding.
  const Shape& a_shape() const { return a_shape_; }
  const Shape& b_shape() const { return b_shape_; }

 private:
  // Moves one side's begin by `step` for each count of an index.
  struct IndexStep {
    int index;
    bool on_a;
    int dim;
    int64_t step;
  };

  Region base_;
  Shape a_shape_;
  Shape b_shape_;
  std::vector<std::string> index_names_;
  std::vector<int64_t> index_sizes_;
  std::vector<IndexStep> index_steps_;
};

// Whether the A sides of `regions` hold every element of a tensor of this shape exactly once; if
// not, says what is wrong: "element [3, 0] has 2 counterparts" or "... has no counterpart".
absl::Status CheckCoversOnce(const Shape& shape, absl::Span<const Region> regions);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_REGION_H_
