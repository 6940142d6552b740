// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds a layout's tensors in a file in which a trainer saved its tree under path names of its own.
//
// The same path is written in many ways, which all mean "layers.0.attn.q_proj.w" here:
//
//   layers/0/attn/q_proj/w    layers-0-attn-q_proj-w    layers.0.attn.q_proj.w.value
//   ['layers'][0]['attn']['q_proj']['w']    .layers[0].attn.q_proj.w.value
//   params/layers/0/attn/q_proj/w           params.params.layers.0.attn.q_proj.w
//
// So a name is read as its steps: what is between '.', '/', '-', brackets and quotes, without
// "params" before and "value" after (flax's collections and its variables' values). Hugging Face's
// own names mean only themselves.
//
//   WS_ASSIGN_OR_RETURN(auto arrays, FindSaved(map, checkpoint));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_SAVED_NAMES_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_SAVED_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"

namespace weight_sync::convert {

// "layers.0.attn.q_proj.w" for each of the above; empty for a name without steps.
std::string PathOf(absl::string_view name);

// Every tensor of the file under the map's names, those that no name of the map matches under their
// own. InvalidArgument names two tensors that are one path.
absl::StatusOr<std::vector<refit::TrainerArray>> FindSaved(const refit::WeightMap& map,
                                                           const refit::Checkpoint& saved);

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_SAVED_NAMES_H_
