// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where axes that share a dimension end: a private part of region_copy and region_parts.

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_COMBINATIONS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_COMBINATIONS_H_

#include <cstdint>

namespace weight_sync::refit {

// Of the combinations of `count` axes of one dimension, counted with the slowest axis first, how many
// lie below index `end` (from where the first lies). Axis i has size(i) places, step(i) indices apart.
template <typename Size, typename Step>
int64_t CombinationsBelow(int count, const Size& size, const Step& step, int64_t end) {
  int64_t below = 0, inner = 1;
  for (int i = 0; i < count; ++i) inner *= size(i);
  for (int i = 0; i < count; ++i) {
    if (end <= 0) return below;
    inner /= size(i);
    const int64_t whole = (end - 1) / step(i);
    if (whole >= size(i)) return below + size(i) * inner;
    below += whole * inner;
    end -= whole * step(i);
  }
  return end > 0 ? below + 1 : below;
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_COMBINATIONS_H_
