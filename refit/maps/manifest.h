// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Manifest: what a published checkpoint holds, recorded once and replayed at each refit, since
// config.json does not decide it: names, shapes, dtypes and their order. From it follow whether a
// tied head is written, whether layers that share K and V have projections, which prefix the text
// model has, whether experts are stacked, and what passes through from the source checkpoint.
//
// As JSON it is RefitInfo's form (refit_info_json.h). Immutable, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(Checkpoint source, Checkpoint::Open("/models/Qwen3-0.6B"));
//   WS_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Record(source));
//   WS_ASSIGN_OR_RETURN(std::string json, RefitInfoToJson(manifest.tensors()));

#ifndef WEIGHT_SYNC_REFIT_MAPS_MANIFEST_H_
#define WEIGHT_SYNC_REFIT_MAPS_MANIFEST_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/family.h"
#include "refit/refit_info.h"

namespace weight_sync::refit {

class Manifest {
 public:
  static absl::StatusOr<Manifest> Record(const Checkpoint& source);
  explicit Manifest(RefitInfo tensors) : tensors_(std::move(tensors)) {}

  const RefitInfo& tensors() const { return tensors_; }

  // What the names say for a model of this config.
  CheckpointForm Form(const ModelConfig& config) const;
  // "hf-fused" when experts are stacked as transformers holds them in memory, else "hf".
  std::string TargetLayout() const;

 private:
  RefitInfo tensors_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_MANIFEST_H_
