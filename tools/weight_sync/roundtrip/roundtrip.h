// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loads a checkpoint into a trainer's layout, refits it and compares the result with the checkpoint.
//
// The trainer's tree is a mapped scratch file without a name, so a model of any size that fits on
// the disk takes a few MB of anonymous memory.
//
//   WS_ASSIGN_OR_RETURN(const Result result, Roundtrip(model, {layout}, progress));
//   if (!result.differ.empty()) ...

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/maps/family.h"
#include "refit/sharding/mesh.h"
#include "tools/common/progress_line.h"
#include "tools/weight_sync/common/source_model.h"

namespace weight_sync::roundtrip {

struct Options {
  refit::LayoutOptions layout;
  bool float32_masters = false;     // arrays of float32 where the checkpoint is bfloat16
  std::string scratch;              // the folder of the scratch file
  std::optional<refit::Mesh> mesh;  // of simulated ranks that hold the tree; none: one process
};

struct Result {
  int64_t tensors = 0;
  int64_t bytes = 0;
  int64_t passed_through = 0;  // those of the tensors that come from the checkpoint again
  int64_t trainer_tensors = 0;
  int64_t trainer_bytes = 0;
  double load_seconds = 0;   // the checkpoint into the tree
  double refit_seconds = 0;  // the tree into buckets, and these compared
  bool scratch_in_memory = false;
  std::vector<std::string> differ;  // HF tensors
};

// Errors: InvalidArgument for a layout that is refused, with the reason, and for a checkpoint that
// cannot be loaded (a tied head that differs from its embedding); ResourceExhausted as
// ScratchTensors.
absl::StatusOr<Result> Roundtrip(const tools::SourceModel& model, const Options& options,
                                 tools::ProgressLine& progress);

}  // namespace weight_sync::roundtrip

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_H_
