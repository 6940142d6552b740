// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Refits a trainer's arrays as a sync does (MapSource, Pack, Program, buckets) and compares what an
// engine would get with a checkpoint, byte for byte.
//
//   WS_ASSIGN_OR_RETURN(auto differ, CompareRefit(map, arrays, checkpoint, {}));
//   for (const std::string& name : differ) ...     // the HF tensors that differ, in order

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_COMPARE_REFIT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_COMPARE_REFIT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/sharding/mesh.h"

namespace weight_sync::roundtrip {

// `map` by the manifest of `checkpoint`. `compared`, if set, is called with the bytes of each bucket.
// With a mesh the arrays are held by simulated ranks (simulated_ranks.h). Errors are those of the
// source.
absl::StatusOr<std::vector<std::string>> CompareRefit(
    const refit::WeightMap& map, absl::Span<const refit::TrainerArray> arrays,
    const refit::Checkpoint& checkpoint, const std::function<void(int64_t bytes)>& compared,
    const refit::Mesh* mesh = nullptr);

}  // namespace weight_sync::roundtrip

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_COMPARE_REFIT_H_
