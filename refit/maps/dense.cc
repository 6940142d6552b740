// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/dense.h"

#include "absl/status/status.h"
#include "refit/maps/common_rows.h"

namespace weight_sync::refit {
namespace {

absl::Status Check(const ModelConfig& config, const LayoutOptions& layout) {
  if (layout.name == "maxtext" && config.model_type == "llama") {
    return absl::InvalidArgumentError(
        "MaxText holds Llama's queries multiplied by head_dim^-0.5, which bfloat16 rounds for most "
        "head sizes, and permuted for its rotary embedding: that cannot be refitted bit for bit");
  }
  return layout.scanned ? CheckScanOfEqualLayers(layout) : absl::OkStatus();
}

}  // namespace

const Family& DenseFamily() {
  static const Family* const family = new Family{
      "dense",
      {"llama", "qwen2", "qwen3"},
      CommonLayouts(),
      [](const ModelConfig& config, int64_t) { return CommonSizes(config); },
      DecoderRows(DenseMlpRows()),
      /*passthrough=*/{},
      Check,
      /*scanned_layout=*/"maxtext",
      ScannedEqualLayers,
  };
  return *family;
}

}  // namespace weight_sync::refit
