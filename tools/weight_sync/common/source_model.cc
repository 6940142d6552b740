// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/source_model.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/maps/all_families.h"

namespace weight_sync::tools {
namespace {

namespace fs = std::filesystem;

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::Status Absent(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("there is no '", path, "'"));
}

}  // namespace

absl::StatusOr<ModelOfConfig> ReadModel(const std::string& path) {
  if (!Exists(path)) return Absent(path);
  ModelOfConfig model;
  model.config_path = IsDirectory(path) ? (fs::path(path) / "config.json").string() : path;
  if (!Exists(model.config_path)) {
    return absl::NotFoundError(absl::StrCat(
        "'", path, "' has no config.json, which says what model it is; name one with --config"));
  }
  WS_ASSIGN_OR_RETURN(model.config, refit::ReadModelConfig(model.config_path));
  auto family = refit::AllFamilies().Find(model.config.model_type);
  if (!family.ok()) return base::Prefixed(model.config_path, family.status());
  model.family = *family;
  return model;
}

absl::StatusOr<refit::Checkpoint> OpenCheckpoint(const std::string& path) {
  if (!Exists(path)) return Absent(path);
  return refit::Checkpoint::Open(path);
}

absl::StatusOr<SourceModel> OpenSourceModel(const std::string& path, const std::string& config) {
  if (!Exists(path)) return Absent(path);
  std::string beside = path;
  if (!IsDirectory(path)) beside = fs::absolute(path).parent_path().string();
  WS_ASSIGN_OR_RETURN(ModelOfConfig model, ReadModel(config.empty() ? beside : config));
  WS_ASSIGN_OR_RETURN(refit::Checkpoint checkpoint, OpenCheckpoint(path));
  auto manifest = refit::Manifest::Record(checkpoint);
  if (!manifest.ok()) return base::Prefixed(path, manifest.status());
  return SourceModel{path, std::move(model), std::move(checkpoint), *std::move(manifest)};
}

}  // namespace weight_sync::tools
