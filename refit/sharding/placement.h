// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Placement: what one mesh dimension does to a tensor, as torch's DTensor says it
// (torch/distributed/tensor/placement_types.py). A value.
//
//   Replicate           every rank along the mesh dimension holds the same
//   Shard(d)            rank r of n holds chunk r of dimension d: ceil(size / n) long, so late ranks
//                       may be short or empty
//   StridedShard(d, f)  as Shard(d), of what the mesh dimensions to the right that also shard d have
//                       left; the product of their sizes is f. FSDP2 over tensor parallelism
//   Partial             a sum that is still to be made. No parameter is that
//
//   WS_ASSIGN_OR_RETURN(Placement placement, Placement::Parse("S(0)"));   // str() or repr() of torch

#ifndef WEIGHT_SYNC_REFIT_SHARDING_PLACEMENT_H_
#define WEIGHT_SYNC_REFIT_SHARDING_PLACEMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

struct Placement {
  enum class Kind { kReplicate, kShard, kStridedShard, kPartial };

  Kind kind = Kind::kReplicate;
  int dim = 0;               // of the tensor; negative: from the last
  int64_t split_factor = 0;  // of kStridedShard

  static Placement Replicate() { return {}; }
  static Placement Shard(int dim) { return {Kind::kShard, dim, 0}; }
  static Placement StridedShard(int dim, int64_t split_factor) {
    return {Kind::kStridedShard, dim, split_factor};
  }
  static Placement Partial() { return {Kind::kPartial, 0, 0}; }

  // "R", "S(0)", "_S(0, 2)", "P(sum)"; "Replicate()", "Shard(dim=0)", "_StridedShard(dim=0, sf=2)",
  // "Partial(sum)". InvalidArgument for anything else.
  static absl::StatusOr<Placement> Parse(absl::string_view text);

  // The short form.
  std::string ToString() const;

  friend bool operator==(const Placement& a, const Placement& b) {
    return a.kind == b.kind && a.dim == b.dim && a.split_factor == b.split_factor;
  }
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_PLACEMENT_H_
