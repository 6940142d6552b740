// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/qwen3_model.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weight_sync::fakes {

std::vector<refit::TensorSpec> Qwen3Tensors(const Qwen3Config& config) {
  const int64_t hidden = config.hidden;
  const int64_t queries = config.attention_heads * config.head_dim;
  const int64_t keys = config.key_value_heads * config.head_dim;
  std::vector<refit::TensorSpec> tensors;
  const auto add = [&tensors](const std::string& name, const refit::Shape& shape) {
    tensors.push_back({absl::StrCat("model.", name, ".weight"), shape, refit::DType::kBF16});
  };
  add("embed_tokens", {config.vocabulary, hidden});
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = absl::StrCat("layers.", i, ".");
    add(layer + "self_attn.q_proj", {queries, hidden});
    add(layer + "self_attn.k_proj", {keys, hidden});
    add(layer + "self_attn.v_proj", {keys, hidden});
    add(layer + "self_attn.o_proj", {hidden, queries});
    add(layer + "self_attn.q_norm", {config.head_dim});
    add(layer + "self_attn.k_norm", {config.head_dim});
    add(layer + "mlp.gate_proj", {config.intermediate, hidden});
    add(layer + "mlp.up_proj", {config.intermediate, hidden});
    add(layer + "mlp.down_proj", {hidden, config.intermediate});
    add(layer + "input_layernorm", {hidden});
    add(layer + "post_attention_layernorm", {hidden});
  }
  add("norm", {hidden});
  return tensors;
}

}  // namespace weight_sync::fakes
