// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// WeightMap: a family's table with one model's sizes and one trainer's layout put in: which boxes of
// which trainer tensors are which boxes of which HF tensors. One map is the loader and the refit.
//
// Complete by construction: every element of every HF tensor is written exactly once, or passes
// through from the source checkpoint; every element of every trainer tensor is read, or the tensor
// is listed as held and not sent. Otherwise Build fails and lists the names on each side.
//
// Immutable, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(dir + "/config.json"));
//   WS_ASSIGN_OR_RETURN(WeightMap map, WeightMap::Build(Qwen3MoeFamily(), config, {"tunix"}));
//   map.hf().size();                    // 18867 for Qwen3-30B-A3B
//   map.trainer()[0].name;              // "embedder.input_embedding"

#ifndef WEIGHT_SYNC_REFIT_MAPS_WEIGHT_MAP_H_
#define WEIGHT_SYNC_REFIT_MAPS_WEIGHT_MAP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/layout/region.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/refit_info.h"

namespace weight_sync::refit {

// How a checkpoint and a model's config disagree, each difference by name.
struct ManifestDifferences {
  std::vector<std::string> unknown;  // the checkpoint has it, and the map knows no such tensor
  std::vector<std::string> missing;  // of the map, and the checkpoint lacks it
  std::vector<std::string> shape;    // "'NAME' SHAPE, by the config SHAPE"
};

struct MapOptions {
  // The form that the engine takes: "hf", the published one, or "hf-fused", with stacked experts.
  // Empty: the manifest's, or "hf".
  std::string target;
  // Of the source checkpoint; borrowed during Build. Without it: what save_pretrained writes.
  const Manifest* manifest = nullptr;
  // If set, gets all of the differences, of which the error shows the first few.
  ManifestDifferences* differences = nullptr;
};

class WeightMap {
 public:
  struct TrainerTensor {
    std::string name;
    Shape shape;                                    // without padding
    std::array<bool, Shape::kMaxRank> padded = {};  // dimensions that may be longer
    bool sent = true;                               // false: held, and part of no HF tensor
  };

  // A box of HF tensor A paired with a box of trainer tensor B.
  struct MappedRegion {
    int trainer;
    Region region;
  };

  // One row of the table, and what came of it.
  struct RowUse {
    std::string hf_name, hf_axes, trainer_name, trainer_axes;
    int64_t regions = 0;
  };

  static absl::StatusOr<WeightMap> Build(const Family& family, const ModelConfig& config,
                                         const LayoutOptions& layout,
                                         const MapOptions& options = {});

  const std::string& family() const { return family_; }
  const LayoutOptions& layout() const { return layout_; }

  // What the engine gets, in order.
  const RefitInfo& hf() const { return hf_; }
  const std::vector<TrainerTensor>& trainer() const { return trainer_; }
  std::optional<int> FindTrainer(absl::string_view name) const;

  // What makes up an HF tensor. Empty: it passes through from the source checkpoint.
  absl::Span<const MappedRegion> regions(int hf_tensor) const;
  bool passes_through(int hf_tensor) const { return regions(hf_tensor).empty(); }

  // The tied head: the HF tensor `head` repeats `tied_to`, whether it is written or not. Empty
  // names in an untied model.
  const std::string& tied_head() const { return tied_head_; }
  const std::string& tied_to() const { return tied_to_; }

  const std::vector<RowUse>& rows() const { return rows_; }

 private:
  friend class WeightMapBuilder;
  explicit WeightMap(RefitInfo hf) : hf_(std::move(hf)) {}

  std::string family_;
  LayoutOptions layout_;
  RefitInfo hf_;
  std::vector<TrainerTensor> trainer_;
  absl::flat_hash_map<std::string, int> trainer_by_name_;
  std::vector<MappedRegion> regions_;  // by HF tensor
  std::vector<size_t> first_region_;   // one more than HF tensors
  std::string tied_head_;
  std::string tied_to_;
  std::vector<RowUse> rows_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_WEIGHT_MAP_H_
