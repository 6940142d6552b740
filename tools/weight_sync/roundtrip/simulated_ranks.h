// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A trainer of several ranks, simulated: each rank is a thread that holds its part of every array, as
// FSDP2 over tensor parallelism cuts along the first dimension, and refits like a process of its own.
//
//   WS_ASSIGN_OR_RETURN(refit::Mesh mesh, ParseMesh("dp=2,tp=2"));
//   WS_RETURN_IF_ERROR(FillBucketsFromShards(map, arrays, checkpoint, mesh, buckets, place, filled));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_SIMULATED_RANKS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_SIMULATED_RANKS_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/bucket.h"
#include "refit/sharding/mesh.h"

namespace weight_sync::roundtrip {

// "dp=2,tp=2", the dimension that cuts last first. InvalidArgument for anything else, and for more
// than 64 ranks.
absl::StatusOr<refit::Mesh> ParseMesh(absl::string_view text);

// As tools::FillBuckets with one source, from contiguous arrays, whose parts stay where they are.
absl::Status FillBucketsFromShards(const refit::WeightMap& map,
                                   absl::Span<const refit::TrainerArray> arrays,
                                   const refit::Checkpoint& checkpoint, const refit::Mesh& mesh,
                                   absl::Span<const refit::Bucket> buckets,
                                   absl::FunctionRef<std::byte*(size_t bucket)> place,
                                   absl::FunctionRef<void(size_t bucket)> filled);

}  // namespace weight_sync::roundtrip

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_SIMULATED_RANKS_H_
