// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MapSource: a RefitSource over a trainer's arrays in any layout that a WeightMap describes.
//
// The arrays' bytes, the source checkpoint and the gate are borrowed and must outlive the source and
// its programs. Arrays may be float32 where the HF tensor is bfloat16: they are rounded to nearest
// even on the way. What the map passes through comes from the source checkpoint.
//
//   WS_ASSIGN_OR_RETURN(WeightMap map, WeightMap::Build(Qwen3MoeFamily(), config, {"tunix"}));
//   StepGate gate;
//   WS_ASSIGN_OR_RETURN(auto source, MapSource::Create(std::move(map), arrays, nullptr, &gate));

#ifndef WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_
#define WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/refit_source.h"

namespace weight_sync::refit {

class MapSource : public RefitSource {
 public:
  // InvalidArgument as MatchArrays; for dtypes whose values cannot be kept; and when `source`, which
  // is only needed for what passes through, lacks it or holds it otherwise than the manifest says.
  static absl::StatusOr<std::unique_ptr<MapSource>> Create(WeightMap map,
                                                           absl::Span<const TrainerArray> arrays,
                                                           const Checkpoint* source,
                                                           const StepGate* gate);

  const WeightMap& map() const { return map_; }
  const RefitInfo& info() const override { return map_.hf(); }
  absl::StatusOr<std::unique_ptr<Program>> Compile(absl::Span<const Bucket> buckets) override;
  absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const override;

 private:
  MapSource(WeightMap map, std::vector<TensorView> views, std::vector<int> passed,
            const StepGate* gate)
      : map_(std::move(map)), views_(std::move(views)), passed_(std::move(passed)), gate_(gate) {}

  const WeightMap map_;
  const std::vector<TensorView> views_;  // the trainer's, then those that pass through
  const std::vector<int> passed_;        // by HF tensor: its view if it passes through, or -1
  const StepGate* const gate_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_MAP_SOURCE_H_
