// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ModelConfig: the numbers of a model's config.json that decide its tensors' names and shapes.
//
// Reads the spellings of the Hugging Face hub and those that transformers 5.15 and later write
// (`num_local_experts`, `per_layer_config`, `layer_types` in place of an interval), flat or under
// `text_config`: different spellings of one model give equal ModelConfigs. Where the file does not
// state head_dim or Gemma 4's sizes, they are what transformers' class of that model takes. Fields
// that a family does not have are 0, false or empty. Immutable once read, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig("/models/Qwen3-0.6B/config.json"));
//   config.head_dim;    // 128: stated, never hidden_size / num_attention_heads when it is

#ifndef WEIGHT_SYNC_REFIT_MAPS_MODEL_CONFIG_H_
#define WEIGHT_SYNC_REFIT_MAPS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

struct ModelConfig {
  std::string model_type;   // of the text model: "qwen3_moe", "gemma4_text"
  bool multimodal = false;  // the text model was nested in a `text_config`
  DType dtype = DType::kBF16;

  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool scaled_rope = false;  // "llama3" scaling

  // Mixture of experts.
  int64_t num_experts = 0;
  int64_t moe_intermediate_size = 0;
  int64_t shared_expert_intermediate_size = 0;

  // One entry a layer.
  std::vector<bool> full_attention;  // otherwise linear (Qwen3-Next) or sliding (Gemma 4)
  std::vector<bool> sparse;          // the layer has experts

  // Linear attention (Qwen3-Next).
  int64_t linear_num_key_heads = 0;
  int64_t linear_num_value_heads = 0;
  int64_t linear_key_head_dim = 0;
  int64_t linear_value_head_dim = 0;
  int64_t linear_conv_kernel_dim = 0;

  // Gemma 4.
  int64_t global_head_dim = 0;
  int64_t num_global_key_value_heads = 0;
  int64_t hidden_size_per_layer_input = 0;
  int64_t vocab_size_per_layer_input = 0;
  int64_t num_kv_shared_layers = 0;
  bool attention_k_eq_v = false;
  bool use_double_wide_mlp = false;
  bool enable_moe_block = false;

  friend bool operator==(const ModelConfig& a, const ModelConfig& b);
};

// InvalidArgument names the field that is missing, of another type, or out of range.
absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view json);

// As ParseModelConfig, with the file's name before the error; NotFound when there is none.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& path);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_MODEL_CONFIG_H_
