// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/common_rows.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace weight_sync::refit {
namespace {

bool Untied(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return !config.tie_word_embeddings;
}
bool IsQwen2(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.model_type == "qwen2";
}
bool HasAttentionBias(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.model_type != "qwen2" && config.attention_bias;
}
bool HasHeadNorms(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.model_type == "qwen3" || config.model_type == "qwen3_moe";
}
bool HasDenseMlp(const ModelConfig& config, const CheckpointForm&, int64_t layer) {
  return !config.sparse[static_cast<size_t>(layer)];
}
bool HasMlpBias(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.model_type == "llama" && config.mlp_bias;
}

RowGroup EmbeddingRows() {
  return {Always,
          /*each_layer=*/false,
          {{{"model.embed_tokens.weight", "v h"},
            kSameAsHf,
            {"embedder.input_embedding", "v h"},
            {"params-token_embedder-embedding", "v+ h"}}}};
}

std::vector<RowGroup> AttentionRows() {
  return {
      {Always,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.input_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.input_layernorm.w", "h"},
            {"params-decoder-layers_{i}-pre_self_attention_layer_norm-scale", "h"}},
           {{"model.layers.{i}.self_attn.q_proj.weight", "(n d) h"},
            kSameAsHf,
            {"layers.{i}.attn.q_proj.w", "h n d"},
            {"params-decoder-layers_{i}-self_attention-query-kernel", "h n d"}},
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kSameAsHf,
            {"layers.{i}.attn.k_proj.w", "h k d"},
            {"params-decoder-layers_{i}-self_attention-key-kernel", "h k d"}},
           {{"model.layers.{i}.self_attn.v_proj.weight", "(k d) h"},
            kSameAsHf,
            {"layers.{i}.attn.v_proj.w", "h k d"},
            {"params-decoder-layers_{i}-self_attention-value-kernel", "h k d"}},
           {{"model.layers.{i}.self_attn.o_proj.weight", "h (n d)"},
            kSameAsHf,
            {"layers.{i}.attn.o_proj.w", "n d h"},
            {"params-decoder-layers_{i}-self_attention-out-kernel", "n d h"}},
       }},
      {IsQwen2,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.q_proj.bias", "(n d)"},
            kSameAsHf,
            {"layers.{i}.attn.q_bias", "(n d)"},
            {"params-decoder-layers_{i}-self_attention-query-bias", "n d"}},
           {{"model.layers.{i}.self_attn.k_proj.bias", "(k d)"},
            kSameAsHf,
            {"layers.{i}.attn.k_bias", "(k d)"},
            {"params-decoder-layers_{i}-self_attention-key-bias", "k d"}},
           {{"model.layers.{i}.self_attn.v_proj.bias", "(k d)"},
            kSameAsHf,
            {"layers.{i}.attn.v_bias", "(k d)"},
            {"params-decoder-layers_{i}-self_attention-value-bias", "k d"}},
       }},
      {HasAttentionBias,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.q_proj.bias", "(n d)"},
            kSameAsHf,
            kAbsent,
            {"params-decoder-layers_{i}-self_attention-query-bias", "n d"}},
           {{"model.layers.{i}.self_attn.k_proj.bias", "(k d)"},
            kSameAsHf,
            kAbsent,
            {"params-decoder-layers_{i}-self_attention-key-bias", "k d"}},
           {{"model.layers.{i}.self_attn.v_proj.bias", "(k d)"},
            kSameAsHf,
            kAbsent,
            {"params-decoder-layers_{i}-self_attention-value-bias", "k d"}},
           {{"model.layers.{i}.self_attn.o_proj.bias", "h"}, kSameAsHf, kAbsent, kAbsent},
       }},
      {HasHeadNorms,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.q_norm.weight", "d"},
            kSameAsHf,
            {"layers.{i}.attn.q_norm.w", "d"},
            {"params-decoder-layers_{i}-self_attention-query_norm-scale", "d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kSameAsHf,
            {"layers.{i}.attn.k_norm.w", "d"},
            {"params-decoder-layers_{i}-self_attention-key_norm-scale", "d"}},
       }},
  };
}

RowGroup PostAttentionNormRow() {
  return {Always,
          /*each_layer=*/true,
          {{{"model.layers.{i}.post_attention_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.post_attention_layernorm.w", "h"},
            {"params-decoder-layers_{i}-post_self_attention_layer_norm-scale", "h"}}}};
}

std::vector<RowGroup> FinalRows() {
  return {
      {Always,
       /*each_layer=*/false,
       {{{"model.norm.weight", "h"},
         kSameAsHf,
         {"final_norm.w", "h"},
         {"params-decoder-decoder_norm-scale", "h"}}}},
      {Untied,
       /*each_layer=*/false,
       {{{"lm_head.weight", "v h"},
         kSameAsHf,
         {"lm_head.w", "h v"},
         {"params-decoder-logits_dense-kernel", "h v+"}}}},
  };
}

}  // namespace

std::vector<std::string> CommonLayouts() { return {"hf", "hf-fused", "tunix", "maxtext"}; }

AxisSizes CommonSizes(const ModelConfig& config) {
  return {{"v", config.vocab_size},
          {"h", config.hidden_size},
          {"n", config.num_attention_heads},
          {"k", config.num_key_value_heads},
          {"d", config.head_dim},
          {"f", config.intermediate_size}};
}

std::vector<RowGroup> DenseMlpRows() {
  return {
      {HasDenseMlp,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.mlp.gate_proj.weight", "f h"},
            kSameAsHf,
            {"layers.{i}.mlp.gate_proj.kernel", "h f"},
            {"params-decoder-layers_{i}-mlp-wi_0-kernel", "h f"}},
           {{"model.layers.{i}.mlp.up_proj.weight", "f h"},
            kSameAsHf,
            {"layers.{i}.mlp.up_proj.kernel", "h f"},
            {"params-decoder-layers_{i}-mlp-wi_1-kernel", "h f"}},
           {{"model.layers.{i}.mlp.down_proj.weight", "h f"},
            kSameAsHf,
            {"layers.{i}.mlp.down_proj.kernel", "f h"},
            {"params-decoder-layers_{i}-mlp-wo-kernel", "f h"}},
       }},
      {HasMlpBias,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.mlp.gate_proj.bias", "f"}, kSameAsHf, kAbsent, kAbsent},
           {{"model.layers.{i}.mlp.up_proj.bias", "f"}, kSameAsHf, kAbsent, kAbsent},
           {{"model.layers.{i}.mlp.down_proj.bias", "h"}, kSameAsHf, kAbsent, kAbsent},
       }},
  };
}

std::vector<RowGroup> DecoderRows(const std::vector<RowGroup>& mlp) {
  std::vector<RowGroup> groups = {EmbeddingRows()};
  const auto add = [&groups](const std::vector<RowGroup>& more) {
    groups.insert(groups.end(), more.begin(), more.end());
  };
  add(AttentionRows());
  groups.push_back(PostAttentionNormRow());
  add(mlp);
  add(FinalRows());
  return groups;
}

std::string InsertDimensions(const std::string& axes, int at, const std::string& dims) {
  std::vector<std::string> words;
  bool merged = false;  // inside parentheses
  bool inside = false;  // inside a dimension
  for (const char c : axes) {
    if (c == ' ' && !merged) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    merged = c == '(' || (merged && c != ')');
    words.back() += c;
  }
  words.insert(words.begin() + std::min<int>(at, static_cast<int>(words.size())), dims);
  return absl::StrJoin(words, " ");
}

Place ScannedEqualLayers(const ModelConfig&, const LayoutOptions& layout, int64_t,
                         const Place& place) {
  return {absl::StrReplaceAll(place.name, {{"-layers_{i}-", "-layers-"}}),
          InsertDimensions(place.axes, layout.scan_axis, "{i}")};
}

absl::Status CheckScanOfEqualLayers(const LayoutOptions& layout) {
  if (layout.scan_period != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("scan_period is ", layout.scan_period,
                     "; this family's layers are all alike and scanned one by one (1)"));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::refit
