// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/roundtrip/roundtrip.h"

#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/weight_map.h"
#include "tools/weight_sync/common/scratch_tensors.h"
#include "tools/weight_sync/common/trainer_specs.h"
#include "tools/weight_sync/roundtrip/compare_refit.h"

namespace weight_sync::roundtrip {

absl::StatusOr<Result> Roundtrip(const tools::SourceModel& model, const Options& options,
                                 tools::ProgressLine& progress) {
  WS_ASSIGN_OR_RETURN(const refit::WeightMap map,
                      refit::WeightMap::Build(*model.model.family, model.model.config,
                                              options.layout, {/*target=*/"", &model.manifest}));
  WS_ASSIGN_OR_RETURN(const std::vector<refit::TensorSpec> specs,
                      tools::TrainerSpecs(map, model.model.config.dtype, options.float32_masters));
  WS_ASSIGN_OR_RETURN(const tools::ScratchTensors scratch,
                      tools::ScratchTensors::Create(options.scratch, specs));
  const std::vector<refit::MutableTrainerArray> arrays = tools::ArraysOf(specs, scratch.tensors());

  Result result;
  result.tensors = map.hf().size();
  result.bytes = map.hf().total_bytes();
  for (int t = 0; t < map.hf().size(); ++t) result.passed_through += map.passes_through(t) ? 1 : 0;
  result.trainer_tensors = static_cast<int64_t>(specs.size());
  for (const refit::TensorSpec& spec : specs) result.trainer_bytes += spec.bytes();
  result.scratch_in_memory = scratch.in_memory();

  int64_t done = 0;
  absl::Time start = absl::Now();
  WS_RETURN_IF_ERROR(refit::LoadCheckpoint(map, model.checkpoint, arrays, [&](int64_t bytes) {
    progress.Show("loading", done += bytes, result.trainer_bytes);
  }));
  result.load_seconds = absl::ToDoubleSeconds(absl::Now() - start);

  std::vector<refit::TrainerArray> readable;
  for (const refit::MutableTrainerArray& array : arrays) {
    readable.push_back({array.name, array.view});
  }
  done = 0;
  start = absl::Now();
  WS_ASSIGN_OR_RETURN(result.differ, CompareRefit(
                                         map, readable, model.checkpoint,
                                         [&](int64_t bytes) {
                                           progress.Show("refitting", done += bytes, result.bytes);
                                         },
                                         options.mesh.has_value() ? &*options.mesh : nullptr));
  result.refit_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

}  // namespace weight_sync::roundtrip
