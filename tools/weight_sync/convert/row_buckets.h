// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Buckets that a refit fills right where tensors lie, whole and contiguous: each is a run of a
// tensor's rows, small enough that progress is seen.
//
//   const RowBuckets rows = MakeRowBuckets(info, targets, /*run_bytes=*/32 << 20);
//   FillBuckets(source, rows.buckets, [&](size_t b) { return rows.places[b]; }, ...);

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_ROW_BUCKETS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_ROW_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "refit/packing/bucket.h"
#include "refit/refit_info.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::convert {

struct RowBuckets {
  std::vector<refit::Bucket> buckets;
  std::vector<std::byte*> places;  // of each bucket's first byte
  int64_t bytes = 0;
};

// `targets` are where the tensors of `info` go; nullptr for one that is not wanted. A row that is
// larger than `run_bytes` is a bucket of its own.
RowBuckets MakeRowBuckets(const refit::RefitInfo& info,
                          absl::Span<const refit::MutableTensorView* const> targets,
                          int64_t run_bytes);

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_ROW_BUCKETS_H_
