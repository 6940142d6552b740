// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/qwen3_next.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "refit/maps/common_rows.h"

namespace weight_sync::refit {
namespace {

// The norms are zero-centered (x * (1 + w)) and every layout here holds the raw w.
//
// Axes: v vocabulary, h hidden, n query heads, k key/value heads, d head dimension, q a query head
// with its output gate (2 d), x experts as an axis, e as an index, m an expert's and s the shared
// expert's intermediate size, r rows of in_proj_qkvz, b of in_proj_ba, c convolution channels, t its
// taps, z value heads, y a value head's dimension. in_proj_* keep HF's interleaved order of rows.
AxisSizes Sizes(const ModelConfig& config, int64_t) {
  const int64_t keys = config.linear_num_key_heads * config.linear_key_head_dim;
  const int64_t values = config.linear_num_value_heads * config.linear_value_head_dim;
  return {{"v", config.vocab_size},
          {"h", config.hidden_size},
          {"n", config.num_attention_heads},
          {"k", config.num_key_value_heads},
          {"d", config.head_dim},
          {"q", 2 * config.head_dim},
          {"x", config.num_experts},
          {"e", config.num_experts},
          {"m", config.moe_intermediate_size},
          {"s", config.shared_expert_intermediate_size},
          {"r", 2 * keys + 2 * values},
          {"b", 2 * config.linear_num_value_heads},
          {"c", 2 * keys + values},
          {"t", config.linear_conv_kernel_dim},
          {"z", config.linear_num_value_heads},
          {"y", config.linear_value_head_dim}};
}

bool FullAttention(const ModelConfig& config, const CheckpointForm&, int64_t layer) {
  return config.full_attention[static_cast<size_t>(layer)];
}
bool LinearAttention(const ModelConfig& config, const CheckpointForm& form, int64_t layer) {
  return !FullAttention(config, form, layer);
}

// Columns: hf, hf-fused, maxtext.
std::vector<RowGroup> Groups() {
  return {
      {Always,
       /*each_layer=*/false,
       {{{"model.embed_tokens.weight", "v h"},
         kSameAsHf,
         {"params-token_embedder-embedding", "v h"}}}},
      {Always,
       /*each_layer=*/true,
       {{{"model.layers.{i}.input_layernorm.weight", "h"},
         kSameAsHf,
         {"params-decoder-layers_{i}-input_layernorm-scale", "h"}}}},
      {FullAttention,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.q_proj.weight", "(n q) h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-query-kernel", "h n q"}},
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-key-kernel", "h k d"}},
           {{"model.layers.{i}.self_attn.v_proj.weight", "(k d) h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-value-kernel", "h k d"}},
           {{"model.layers.{i}.self_attn.o_proj.weight", "h (n d)"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-out-kernel", "(n d) h"}},
           {{"model.layers.{i}.self_attn.q_norm.weight", "d"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-query_norm-scale", "d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-attention-key_norm-scale", "d"}},
       }},
      {LinearAttention,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.linear_attn.in_proj_qkvz.weight", "r h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-in_proj_qkvz-kernel", "h r"}},
           {{"model.layers.{i}.linear_attn.in_proj_ba.weight", "b h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-in_proj_ba-kernel", "h b"}},
           {{"model.layers.{i}.linear_attn.conv1d.weight", "c 1 t"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-conv1d-kernel", "t 1 c"}},
           {{"model.layers.{i}.linear_attn.A_log", "z"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-A_log", "z"}},
           {{"model.layers.{i}.linear_attn.dt_bias", "z"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-dt_bias", "z"}},
           {{"model.layers.{i}.linear_attn.norm.weight", "y"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-norm-rms_norm-scale", "y"}},
           {{"model.layers.{i}.linear_attn.out_proj.weight", "h (z y)"},
            kSameAsHf,
            {"params-decoder-layers_{i}-attention-out_proj-kernel", "(z y) h"}},
       }},
      {Always,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.post_attention_layernorm.weight", "h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-post_attention_layernorm-scale", "h"}},
           {{"model.layers.{i}.mlp.gate.weight", "x h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-mlp-routed_experts-gate-kernel", "h x"}},
           {{"model.layers.{i}.mlp.experts.{e}.gate_proj.weight", "m h"},
            {"model.layers.{i}.mlp.experts.gate_up_proj", "{e} ({0/2} m) h"},
            {"params-decoder-layers_{i}-mlp-routed_experts-wi_0", "{e} h m"}},
           {{"model.layers.{i}.mlp.experts.{e}.up_proj.weight", "m h"},
            {"model.layers.{i}.mlp.experts.gate_up_proj", "{e} ({1/2} m) h"},
            {"params-decoder-layers_{i}-mlp-routed_experts-wi_1", "{e} h m"}},
           {{"model.layers.{i}.mlp.experts.{e}.down_proj.weight", "h m"},
            {"model.layers.{i}.mlp.experts.down_proj", "{e} h m"},
            {"params-decoder-layers_{i}-mlp-routed_experts-wo", "{e} m h"}},
           {{"model.layers.{i}.mlp.shared_expert.gate_proj.weight", "s h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-mlp-shared_expert-wi_0-kernel", "h s"}},
           {{"model.layers.{i}.mlp.shared_expert.up_proj.weight", "s h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-mlp-shared_expert-wi_1-kernel", "h s"}},
           {{"model.layers.{i}.mlp.shared_expert.down_proj.weight", "h s"},
            kSameAsHf,
            {"params-decoder-layers_{i}-mlp-shared_expert-wo-kernel", "s h"}},
           {{"model.layers.{i}.mlp.shared_expert_gate.weight", "1 h"},
            kSameAsHf,
            {"params-decoder-layers_{i}-mlp-shared_expert_gate-kernel", "h 1"}},
       }},
      {Always,
       /*each_layer=*/false,
       {
           {{"model.norm.weight", "h"}, kSameAsHf, {"params-decoder-decoder_norm-scale", "h"}},
           {{"lm_head.weight", "v h"}, kSameAsHf, {"params-decoder-logits_dense-kernel", "h v"}},
       }},
  };
}

absl::Status Check(const ModelConfig& config, const LayoutOptions& layout) {
  if (config.tie_word_embeddings) {
    return absl::InvalidArgumentError("a tied head is not known for this family");
  }
  for (const bool sparse : config.sparse) {
    if (!sparse) {
      return absl::InvalidArgumentError("layers without experts are not known for this family");
    }
  }
  if (config.linear_num_key_heads == 0 ||
      config.linear_num_value_heads % config.linear_num_key_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'linear_num_value_heads' is ", config.linear_num_value_heads,
                     ", not a multiple of 'linear_num_key_heads', ", config.linear_num_key_heads));
  }
  if (layout.name == "tunix") {
    return absl::InvalidArgumentError("tunix has no model of this family, so no layout of its own");
  }
  if (!layout.scanned) return absl::OkStatus();
  const int64_t period = layout.scan_period;
  if (period < 2 || config.num_hidden_layers % period != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("scan_period is ", period, "; it must divide the ", config.num_hidden_layers,
                     " layers and be at least 2"));
  }
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.full_attention[static_cast<size_t>(layer)] != (layer % period == period - 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a scanned block of ", period,
                       " layers has full attention in its last layer only; layer ", layer,
                       " does not fit that"));
    }
  }
  return absl::OkStatus();
}

// A block's linear layers are scanned inside of the scan over blocks.
Place ScannedPlace(const ModelConfig& config, const LayoutOptions& layout, int64_t layer,
                   const Place& place) {
  const bool full = config.full_attention[static_cast<size_t>(layer)];
  return {absl::StrReplaceAll(place.name, {{"-layers_{i}-", full ? "-layers-global_layer-"
                                                                 : "-layers-local_layers-"}}),
          InsertDimensions(place.axes, layout.scan_axis, full ? "{block}" : "{block} {local}")};
}

}  // namespace

const Family& Qwen3NextFamily() {
  static const Family* const family = new Family{
      "qwen3_next", {"qwen3_next"}, {"hf", "hf-fused", "maxtext"}, Sizes, Groups(), {"mtp."}, Check,
      "maxtext",    ScannedPlace,
  };
  return *family;
}

}  // namespace weight_sync::refit
