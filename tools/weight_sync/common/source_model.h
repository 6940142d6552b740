// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint with its config.json, and the family that knows it.
//
//   WS_ASSIGN_OR_RETURN(const SourceModel model, OpenSourceModel("/models/Qwen3-0.6B", ""));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SOURCE_MODEL_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SOURCE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"

namespace weight_sync::tools {

struct ModelOfConfig {
  std::string config_path;
  refit::ModelConfig config;
  const refit::Family* family;
};

struct SourceModel {
  std::string path;
  ModelOfConfig model;
  refit::Checkpoint checkpoint;
  refit::Manifest manifest;
};

// `path`: a config.json, or a folder with one. NotFound when it is not there, or no family of this
// library has its model type (which lists those that one has).
absl::StatusOr<ModelOfConfig> ReadModel(const std::string& path);

// NotFound when it is not there; else as Checkpoint::Open.
absl::StatusOr<refit::Checkpoint> OpenCheckpoint(const std::string& path);

// `path`: a folder, an index or a safetensors file. An empty `config` is the config.json beside it.
absl::StatusOr<SourceModel> OpenSourceModel(const std::string& path, const std::string& config);

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SOURCE_MODEL_H_
