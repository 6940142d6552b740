// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A published model whose refit is compiled from shapes alone: its config, the layout of its trainer,
// and what the trainer's arrays are, without their bytes.
//
//   WS_ASSIGN_OR_RETURN(std::unique_ptr<CompileModel> model, CompileModel::Qwen3Moe());
//   WS_ASSIGN_OR_RETURN(refit::WeightMap map, model->BuildMap());

#ifndef WEIGHT_SYNC_BENCHMARKS_COMPILE_MODEL_H_
#define WEIGHT_SYNC_BENCHMARKS_COMPILE_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/map_source.h"
#include "refit/maps/model_config.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/read_guard.h"

namespace weight_sync::benchmarks {

class CompileModel {
 public:
  // Qwen3-30B-A3B in tunix: 18,867 tensors, 61 GB.
  static absl::StatusOr<std::unique_ptr<CompileModel>> Qwen3Moe();
  // Qwen3-Next-80B-A3B in MaxText, scanned in blocks of four layers, with the MTP layers passed
  // through: 75,944 tensors, 163 GB.
  static absl::StatusOr<std::unique_ptr<CompileModel>> Qwen3Next();

  CompileModel(const CompileModel&) = delete;
  CompileModel& operator=(const CompileModel&) = delete;

  absl::StatusOr<refit::WeightMap> BuildMap() const;
  absl::StatusOr<std::unique_ptr<refit::MapSource>> CreateSource(refit::WeightMap map) const;

  const std::vector<refit::ArraySpec>& arrays() const { return arrays_; }

 private:
  CompileModel(const refit::Family& family, refit::ModelConfig config, refit::LayoutOptions layout)
      : family_(family), config_(std::move(config)), layout_(std::move(layout)) {}

  static absl::StatusOr<std::unique_ptr<CompileModel>> Create(const refit::Family& family,
                                                              const std::string& published,
                                                              refit::LayoutOptions layout);

  const refit::Family& family_;
  const refit::ModelConfig config_;
  const refit::LayoutOptions layout_;
  const refit::StepGate gate_;
  // Where something passes through: the source checkpoint. Its file is a hole.
  std::optional<refit::Manifest> manifest_;
  std::optional<refit::Checkpoint> source_;
  std::vector<refit::ArraySpec> arrays_;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_COMPILE_MODEL_H_
