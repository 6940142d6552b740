// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/qwen3_moe.h"

#include <vector>

#include "absl/status/status.h"
#include "refit/maps/common_rows.h"

namespace weight_sync::refit {
namespace {

// Axes beyond the common ones: x experts as an axis, e as an index, m an expert's intermediate size.
AxisSizes Sizes(const ModelConfig& config, int64_t) {
  AxisSizes sizes = CommonSizes(config);
  sizes["e"] = sizes["x"] = config.num_experts;
  sizes["m"] = config.moe_intermediate_size;
  return sizes;
}

bool HasExperts(const ModelConfig& config, const CheckpointForm&, int64_t layer) {
  return config.sparse[static_cast<size_t>(layer)];
}

RowGroup ExpertRows() {
  return {HasExperts,
          /*each_layer=*/true,
          {
              {{"model.layers.{i}.mlp.gate.weight", "x h"},
               kSameAsHf,
               {"layers.{i}.mlp.router.kernel", "h x"},
               {"params-decoder-layers_{i}-moe_block-gate-kernel", "h x"}},
              {{"model.layers.{i}.mlp.experts.{e}.gate_proj.weight", "m h"},
               {"model.layers.{i}.mlp.experts.gate_up_proj", "{e} ({0/2} m) h"},
               {"layers.{i}.mlp.gate_proj", "{e} h m"},
               {"params-decoder-layers_{i}-moe_block-wi_0", "{e} h m"}},
              {{"model.layers.{i}.mlp.experts.{e}.up_proj.weight", "m h"},
               {"model.layers.{i}.mlp.experts.gate_up_proj", "{e} ({1/2} m) h"},
               {"layers.{i}.mlp.up_proj", "{e} h m"},
               {"params-decoder-layers_{i}-moe_block-wi_1", "{e} h m"}},
              {{"model.layers.{i}.mlp.experts.{e}.down_proj.weight", "h m"},
               {"model.layers.{i}.mlp.experts.down_proj", "{e} h m"},
               {"layers.{i}.mlp.down_proj", "{e} m h"},
               {"params-decoder-layers_{i}-moe_block-wo", "{e} m h"}},
          }};
}

absl::Status Check(const ModelConfig& config, const LayoutOptions& layout) {
  if (config.num_experts == 0) {
    return absl::InvalidArgumentError("config has no 'num_experts' and no 'num_local_experts'");
  }
  if (layout.name == "tunix" || layout.name == "maxtext") {
    for (const bool sparse : config.sparse) {
      if (!sparse) {
        return absl::InvalidArgumentError(
            "this model has layers with experts and layers without ('mlp_only_layers' or "
            "'decoder_sparse_step'), which the trainer's model of this family does not have");
      }
    }
  }
  return layout.scanned ? CheckScanOfEqualLayers(layout) : absl::OkStatus();
}

std::vector<RowGroup> MlpRows() {
  std::vector<RowGroup> groups = DenseMlpRows();
  groups.insert(groups.begin(), ExpertRows());
  return groups;
}

}  // namespace

const Family& Qwen3MoeFamily() {
  static const Family* const family = new Family{
      "qwen3_moe", {"qwen3_moe"}, CommonLayouts(),    Sizes, DecoderRows(MlpRows()), {},
      Check,       "maxtext",     ScannedEqualLayers,
  };
  return *family;
}

}  // namespace weight_sync::refit
