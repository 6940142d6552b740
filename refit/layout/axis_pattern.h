// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// AxisPattern: how the elements of a tensor lie, in the notation of einops (https://einops.rocks),
// with two additions: one index of an axis, and padding.
//
//   v h             two dimensions, axes v and h
//   (n d) h         a dimension that merges two axes, n the slower
//   {e} h m         index e of the first dimension, which has one place for each e
//   {e} ({0/2} m) h the first half of the second dimension: gate of gate and up
//   v+ h            v, then padding up to the dimension's size: never read
//   h 1             a dimension of size one
//   (empty)         a scalar
//
// Two patterns with the same axes pair the elements of two tensors one to one (region.h): transpose,
// split and merge, take or place one index, concatenate. Names are letters, digits and _, and begin
// with a letter. Each name occurs once in a pattern; anything else would be ambiguous.
//
// Immutable, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(AxisPattern query, AxisPattern::Parse("(n d) h"));
//   query.dims()[0].factors.size();    // 2

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_AXIS_PATTERN_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_AXIS_PATTERN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

class AxisPattern {
 public:
  struct Factor {
    enum class Kind : uint8_t {
      kAxis,      // every index of axis `name`
      kIndex,     // the index that the caller gives `name`
      kConstant,  // index `value` of `size`
    };
    Kind kind;
    std::string name;
    int64_t value = 0;
    int64_t size = 1;
  };
  struct Dimension {
    std::vector<Factor> factors;  // slowest first; none: size one
    bool padded = false;
  };

  // InvalidArgument shows the pattern with >>> at the place.
  static absl::StatusOr<AxisPattern> Parse(absl::string_view text);

  const std::vector<Dimension>& dims() const { return dims_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<Dimension> dims_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_AXIS_PATTERN_H_
