// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/manifest.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {

absl::StatusOr<Manifest> Manifest::Record(const Checkpoint& source) {
  std::vector<TensorSpec> tensors;
  tensors.reserve(source.tensors().size());
  for (const NamedTensor& tensor : source.tensors()) {
    tensors.push_back({tensor.name, tensor.tensor.shape(), tensor.tensor.dtype()});
  }
  WS_ASSIGN_OR_RETURN(RefitInfo info, RefitInfo::Create(std::move(tensors)));
  return Manifest(std::move(info));
}

CheckpointForm Manifest::Form(const ModelConfig& config) const {
  CheckpointForm form;
  for (const TensorSpec& tensor : tensors_.tensors()) {
    form.language_model_prefix |= absl::StartsWith(tensor.name, "model.language_model.");
  }
  form.tied_lm_head = tensors_.Find("lm_head.weight").has_value();
  const std::string last =
      absl::StrCat(form.language_model_prefix ? "model.language_model." : "model.", "layers.",
                   config.num_hidden_layers - 1, ".self_attn.k_proj.weight");
  form.shared_kv = config.num_kv_shared_layers > 0 && tensors_.Find(last).has_value();
  return form;
}

std::string Manifest::TargetLayout() const {
  for (const TensorSpec& tensor : tensors_.tensors()) {
    // Gemma 4 stacks its experts in every form, but not under `mlp`.
    if (absl::EndsWith(tensor.name, ".mlp.experts.gate_up_proj")) return "hf-fused";
  }
  return "hf";
}

}  // namespace weight_sync::refit
