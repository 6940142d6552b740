// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Family: how one model family's parameters are named and laid out, as a table: one row a
// parameter, one column a layout. The first column is "hf", the published Hugging Face form.
//
// Any two columns of a row relate two tensors both ways (refit/layout/region.h), so nobody writes a
// loader's inverse by hand. A place is a name and an axis pattern:
//
//   {"model.layers.{i}.self_attn.q_proj.weight", "(n d) h"},  {"layers.{i}.attn.q_proj.w", "h n d"}
//
// Indices in {} are the same in names and patterns:
//
//   i          the layer, counted from 0
//   e          the expert, below the size that `sizes` gives e
//   block, local   of a scanned layout: i / period; i % period, of period - 1 places (the last
//                  layer of a block is of another kind and has tensors of its own)
//
// A user's own family is a Family too: see registry.h.

#ifndef WEIGHT_SYNC_REFIT_MAPS_FAMILY_H_
#define WEIGHT_SYNC_REFIT_MAPS_FAMILY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "refit/layout/region.h"
#include "refit/maps/model_config.h"

namespace weight_sync::refit {

// How a trainer lays out the parameters of a family.
struct LayoutOptions {
  std::string name = "hf";

  // Layers stacked into one tensor (MaxText's scan_layers): the stack's axis, 0 or 1, and after how
  // many layers the pattern of layers repeats (the length of a block).
  bool scanned = false;
  int scan_axis = 1;
  int64_t scan_period = 1;
};

// Layouts of Hugging Face's own names, which are also what engines take.
inline bool IsHfForm(absl::string_view layout) { return layout == "hf" || layout == "hf-fused"; }

// Facts of a checkpoint that its config.json does not decide (manifest.h reads them).
struct CheckpointForm {
  bool tied_lm_head = false;  // a tied model's lm_head.weight is written all the same
  bool shared_kv = false;     // layers that share K and V still have k_proj, v_proj, k_norm
  bool language_model_prefix = false;  // model.language_model.* instead of model.*
};

// One parameter in one layout: its name and how it lies (refit/layout/axis_pattern.h).
struct Place {
  std::string name;
  std::string axes;
};

// Places, one a layout, in the order of Family::layouts.
using Row = std::vector<Place>;

// In a row: as in the first column; and: this layout does not hold the parameter.
inline const Place kSameAsHf = {"=", ""};
inline const Place kAbsent = {"", ""};

// For RowGroup::when.
inline bool Always(const ModelConfig&, const CheckpointForm&, int64_t) { return true; }

// Rows that exist together.
struct RowGroup {
  // Whether the rows exist; asked for each layer where `each_layer`, else once with layer -1.
  std::function<bool(const ModelConfig&, const CheckpointForm&, int64_t layer)> when;
  bool each_layer = false;
  std::vector<Row> rows;
};

struct Family {
  std::string name;
  std::vector<std::string> model_types;  // of config.json
  std::vector<std::string> layouts;      // "hf" first
  // Sizes of the axes and of e, at a layer (-1: of no layer).
  std::function<AxisSizes(const ModelConfig&, int64_t layer)> sizes;
  std::vector<RowGroup> groups;
  // HF tensors that no trainer holds and that a refit takes from the source checkpoint, by prefix
  // of their names ("mtp.").
  std::vector<std::string> passthrough;
  // Why this model cannot be refitted exactly in this layout; OK when it can.
  std::function<absl::Status(const ModelConfig&, const LayoutOptions&)> check;
  // The layout that has a scanned form, if one has, and the place of a parameter there when its
  // layers are scanned.
  std::string scanned_layout;
  std::function<Place(const ModelConfig&, const LayoutOptions&, int64_t layer, const Place&)>
      scanned_place;
  // In a tied model the first HF tensor repeats the second: written only where the checkpoint has
  // it, and compared when a checkpoint or a trainer holds both.
  std::string tied_head = "lm_head.weight";
  std::string tied_to = "model.embed_tokens.weight";
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_FAMILY_H_
