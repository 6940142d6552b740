// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: holds a WeightMap against a trainer's tree that was written down by formula
// (refit/testing/family_trees.h), in both directions, byte by byte.
//
//   for (const LayoutCase& c : LayoutCases(model)) {
//     auto checked = CheckedModel::Write(model, c, Storage::kBF16);
//     EXPECT_THAT(checked->CheckTree(FamilyOf(model)), IsOk());
//   }

#ifndef WEIGHT_SYNC_REFIT_MAPS_TREE_CHECK_H_
#define WEIGHT_SYNC_REFIT_MAPS_TREE_CHECK_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/packer.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/testing/elements.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit::testing {

// A trainer's layout of a model, and the form that the engine takes.
struct LayoutCase {
  std::string label;
  LayoutOptions layout;
  std::string target;
  bool manifest = false;
  std::vector<Elements> hf;    // what the engine gets
  std::vector<Elements> tree;  // what the trainer holds
};

// Every layout that the model's family has, with and without a manifest where both can be.
std::vector<LayoutCase> LayoutCases(const ModelSpec& model);

// The plainest of a layout: not scanned, for engines that take the published form.
LayoutCase PlainCase(const ModelSpec& model, const std::string& layout);

class CheckedModel {
 public:
  // Writes the checkpoint of the case to a file of its own, with values kBF16 or kF32.
  static absl::StatusOr<CheckedModel> Write(const ModelSpec& model, const LayoutCase& c,
                                            Storage stored);

  absl::StatusOr<WeightMap> Build(const Family& family) const;

  // Each says what differs first.
  absl::Status CheckShapes(const WeightMap& map) const;
  absl::Status CheckLoad(const WeightMap& map, Storage arrays) const;
  // The arrays lie with their first dimension fastest if `column_major`.
  absl::Status CheckRefit(const WeightMap& map, Storage arrays, const Geometry& geometry,
                          bool column_major) const;

  // Builds the map and compares names, shapes and the loaded tree.
  absl::Status CheckTree(const Family& family) const;

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Manifest* manifest() const { return manifest_.has_value() ? &*manifest_ : nullptr; }
  const ModelConfig& config() const { return config_; }

 private:
  CheckedModel(LayoutCase c, Storage stored, ModelConfig config,
               std::shared_ptr<const Checkpoint> checkpoint)
      : case_(std::move(c)),
        stored_(stored),
        config_(std::move(config)),
        checkpoint_(std::move(checkpoint)) {}

  LayoutCase case_;
  Storage stored_;
  ModelConfig config_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::optional<Manifest> manifest_;
};

// What crosses in a refit of these tensors.
RefitInfo InfoOf(const std::vector<Elements>& tensors, DType dtype = DType::kBF16);

// The family of a model, of all of this library's.
const Family& FamilyOf(const ModelSpec& model);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_MAPS_TREE_CHECK_H_
