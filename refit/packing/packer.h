// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The native geometry: tensors in RefitInfo order, each started at a multiple of `alignment`, cut
// wherever a bucket of `bucket_bytes` is full. No bucket is larger, whatever the tensors are: one
// of 10 GB and one of 6 bytes both work with a 1 MiB slot, also when a single row does not fit.
//
// Deterministic: equal RefitInfo and Geometry give equal buckets on both ends, which
// PlanDigest() lets them check. Elements are never split; tensors of no elements get no piece.
//
//   Geometry geometry{/*bucket_bytes=*/1 << 20, /*alignment=*/64};
//   WS_ASSIGN_OR_RETURN(std::vector<Bucket> buckets, Pack(info, geometry));

#ifndef WEIGHT_SYNC_REFIT_PACKING_PACKER_H_
#define WEIGHT_SYNC_REFIT_PACKING_PACKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "refit/packing/bucket.h"
#include "refit/refit_info.h"

namespace weight_sync::refit {

struct Geometry {
  int64_t bucket_bytes = 0;
  int64_t alignment = 64;
};

// InvalidArgument unless alignment is a power of two of at least 8 (the largest element) and
// bucket_bytes a positive multiple of it.
absl::Status CheckGeometry(const Geometry& geometry);

// At least one bucket, if only an empty one (every tensor without elements).
absl::StatusOr<std::vector<Bucket>> Pack(const RefitInfo& info, const Geometry& geometry);

// Of every piece's place. Equal on both ends, or they would read each other's bytes wrongly.
base::Digest128 PlanDigest(absl::Span<const Bucket> buckets);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_PACKING_PACKER_H_
