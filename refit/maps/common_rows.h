// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What several families' tables share: rows of the decoder around its MLP, and MaxText's scanned
// form. Columns: hf, hf-fused, tunix, maxtext.
//
// Axes: v vocabulary, h hidden, n query heads, k key/value heads, d head dimension, f intermediate.
// Sources: the tensor names of transformers' Llama, Qwen2 and Qwen3 models; tunix 0.1.7
// (models/*/params.py); MaxText 0.2.5 (checkpoint_conversion/utils/param_mapping.py).

#ifndef WEIGHT_SYNC_REFIT_MAPS_COMMON_ROWS_H_
#define WEIGHT_SYNC_REFIT_MAPS_COMMON_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "refit/layout/region.h"
#include "refit/maps/family.h"

namespace weight_sync::refit {

std::vector<std::string> CommonLayouts();

// v, h, n, k, d, f.
AxisSizes CommonSizes(const ModelConfig& config);

// The whole decoder: embedding; in each layer input norm and attention, with biases and per-head
// norms where the model has them, the norm after it, the groups `mlp`; final norm and head.
std::vector<RowGroup> DecoderRows(const std::vector<RowGroup>& mlp);
// gate, up, down of the layers without experts.
std::vector<RowGroup> DenseMlpRows();

// MaxText's stack of equal layers: `layers_{i}-` becomes `layers-`, with {i} at the scan axis.
Place ScannedEqualLayers(const ModelConfig& config, const LayoutOptions& layout, int64_t layer,
                         const Place& place);

// `dims` put into the pattern before its dimension `at`.
std::string InsertDimensions(const std::string& axes, int at, const std::string& dims);

// InvalidArgument when a scanned layout's options are not those of a stack of equal layers.
absl::Status CheckScanOfEqualLayers(const LayoutOptions& layout);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_COMMON_ROWS_H_
