// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/row_buckets.h"

#include <algorithm>

#include "refit/layout/box.h"
#include "refit/tensor/shape.h"

namespace weight_sync::convert {

using refit::Box;
using refit::MutableTensorView;

RowBuckets MakeRowBuckets(const refit::RefitInfo& info,
                          absl::Span<const MutableTensorView* const> targets, int64_t run_bytes) {
  RowBuckets made;
  for (int t = 0; t < info.size(); ++t) {
    const MutableTensorView* const target = targets[static_cast<size_t>(t)];
    if (target == nullptr || target->num_bytes() == 0) continue;
    Box box = Box::Whole(refit::StorageShape(info[t].dtype, info[t].shape));
    const int64_t rows = box.rank == 0 ? 1 : box.size[0];
    const int64_t row_bytes = target->num_bytes() / rows;
    const int64_t run = std::max<int64_t>(1, run_bytes / row_bytes);
    for (int64_t begin = 0; begin < rows; begin += run) {
      const int64_t size = std::min(run, rows - begin), bytes = size * row_bytes;
      if (box.rank > 0) {
        box.begin[0] = begin;
        box.size[0] = size;
      }
      made.buckets.push_back({{{t, box, /*dst=*/0, bytes}}, bytes});
      made.places.push_back(target->data() + begin * row_bytes);
    }
    made.bytes += target->num_bytes();
  }
  return made;
}

}  // namespace weight_sync::convert
