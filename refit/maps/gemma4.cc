// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/gemma4.h"

#include <vector>

#include "absl/status/status.h"

namespace weight_sync::refit {
namespace {

// Sources: transformers 5.19's Gemma 4 text model; tunix 0.1.7 (models/gemma4). Every norm holds its
// plain scale, without an offset.
bool FullAttention(const ModelConfig& config, int64_t layer) {
  return config.full_attention[static_cast<size_t>(layer)];
}

// Takes K and V of an earlier layer.
bool SharesKv(const ModelConfig& config, int64_t layer) {
  return layer >= config.num_hidden_layers - config.num_kv_shared_layers;
}

// Its keys are also its values.
bool KeysAreValues(const ModelConfig& config, int64_t layer) {
  return config.attention_k_eq_v && FullAttention(config, layer);
}

// Axes: v vocabulary, h hidden, n query heads, k key/value heads, d head dimension, f intermediate,
// w vocabulary and p size of the per-layer embedding, l its layers, x experts, g gate and up (or
// K and V), m an expert's intermediate size, o one.
AxisSizes Sizes(const ModelConfig& config, int64_t layer) {
  AxisSizes sizes = {{"v", config.vocab_size}, {"h", config.hidden_size}, {"g", 2}, {"o", 1}};
  if (config.hidden_size_per_layer_input > 0) {
    sizes["w"] = config.vocab_size_per_layer_input;
    sizes["p"] = config.hidden_size_per_layer_input;
    sizes["l"] = config.num_hidden_layers;
  }
  if (config.enable_moe_block) {
    sizes["x"] = config.num_experts;
    sizes["m"] = config.moe_intermediate_size;
  }
  if (layer < 0) return sizes;
  const bool full = FullAttention(config, layer);
  const bool double_wide = config.use_double_wide_mlp && SharesKv(config, layer);
  sizes["n"] = config.num_attention_heads;
  sizes["d"] = full ? config.global_head_dim : config.head_dim;
  sizes["k"] =
      KeysAreValues(config, layer) ? config.num_global_key_value_heads : config.num_key_value_heads;
  sizes["f"] = config.intermediate_size * (double_wide ? 2 : 1);
  return sizes;
}

bool PerLayerInput(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.hidden_size_per_layer_input > 0;
}
bool HasExperts(const ModelConfig& config, const CheckpointForm&, int64_t) {
  return config.enable_moe_block;
}
bool OwnKv(const ModelConfig& config, const CheckpointForm&, int64_t layer) {
  return !SharesKv(config, layer) && !KeysAreValues(config, layer);
}
bool OwnKeysOnly(const ModelConfig& config, const CheckpointForm&, int64_t layer) {
  return !SharesKv(config, layer) && KeysAreValues(config, layer);
}
bool RedundantKv(const ModelConfig& config, const CheckpointForm& form, int64_t layer) {
  return SharesKv(config, layer) && !KeysAreValues(config, layer) && form.shared_kv;
}
bool RedundantKeysOnly(const ModelConfig& config, const CheckpointForm& form, int64_t layer) {
  return SharesKv(config, layer) && KeysAreValues(config, layer) && form.shared_kv;
}
bool UnsentKv(const ModelConfig& config, const CheckpointForm& form, int64_t layer) {
  return SharesKv(config, layer) && !KeysAreValues(config, layer) && !form.shared_kv;
}
bool UnsentKeysOnly(const ModelConfig& config, const CheckpointForm& form, int64_t layer) {
  return SharesKv(config, layer) && KeysAreValues(config, layer) && !form.shared_kv;
}

// Columns: hf, hf-fused, tunix.
std::vector<RowGroup> Groups() {
  return {
      {Always,
       /*each_layer=*/false,
       {{{"model.embed_tokens.weight", "v h"}, kSameAsHf, {"embedder.input_embedding", "v h"}}}},
      {PerLayerInput,
       /*each_layer=*/false,
       {
           {{"model.embed_tokens_per_layer.weight", "w (l p)"},
            kSameAsHf,
            {"embedder.per_layer_input_embedding", "w l p"}},
           {{"model.per_layer_model_projection.weight", "(l p) h"},
            kSameAsHf,
            {"embedder.per_layer_model_projection.w", "h l p"}},
           {{"model.per_layer_projection_norm.weight", "p"},
            kSameAsHf,
            {"embedder.per_layer_projection_norm.scale", "p"}},
       }},
      {Always,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.input_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.pre_attention_norm.scale", "h"}},
           {{"model.layers.{i}.self_attn.q_proj.weight", "(n d) h"},
            kSameAsHf,
            {"layers.{i}.attn.q_einsum.w", "n h d"}},
       }},
      {OwnKv,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kSameAsHf,
            {"layers.{i}.attn.kv_einsum.w", "{0/2} k h d"}},
           {{"model.layers.{i}.self_attn.v_proj.weight", "(k d) h"},
            kSameAsHf,
            {"layers.{i}.attn.kv_einsum.w", "{1/2} k h d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kSameAsHf,
            {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      {OwnKeysOnly,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kSameAsHf,
            {"layers.{i}.attn.k_einsum.w", "k h d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kSameAsHf,
            {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      // Layers that share K and V: the published checkpoints of the small models and tunix hold
      // projections for them all the same, which nothing reads; transformers does not.
      {RedundantKv,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kAbsent,
            {"layers.{i}.attn.kv_einsum.w", "{0/2} k h d"}},
           {{"model.layers.{i}.self_attn.v_proj.weight", "(k d) h"},
            kAbsent,
            {"layers.{i}.attn.kv_einsum.w", "{1/2} k h d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kAbsent,
            {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      {RedundantKeysOnly,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.k_proj.weight", "(k d) h"},
            kAbsent,
            {"layers.{i}.attn.k_einsum.w", "k h d"}},
           {{"model.layers.{i}.self_attn.k_norm.weight", "d"},
            kAbsent,
            {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      {UnsentKv,
       /*each_layer=*/true,
       {
           {kAbsent, kAbsent, {"layers.{i}.attn.kv_einsum.w", "g k h d"}},
           {kAbsent, kAbsent, {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      {UnsentKeysOnly,
       /*each_layer=*/true,
       {
           {kAbsent, kAbsent, {"layers.{i}.attn.k_einsum.w", "k h d"}},
           {kAbsent, kAbsent, {"layers.{i}.attn._key_norm.scale", "d"}},
       }},
      {Always,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.self_attn.q_norm.weight", "d"},
            kSameAsHf,
            {"layers.{i}.attn._query_norm.scale", "d"}},
           {{"model.layers.{i}.self_attn.o_proj.weight", "h (n d)"},
            kSameAsHf,
            {"layers.{i}.attn.attn_vec_einsum.w", "n d h"}},
           {{"model.layers.{i}.post_attention_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.post_attention_norm.scale", "h"}},
           {{"model.layers.{i}.pre_feedforward_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.pre_ffw_norm.scale", "h"}},
           {{"model.layers.{i}.mlp.gate_proj.weight", "f h"},
            kSameAsHf,
            {"layers.{i}.mlp.gate_proj.kernel", "h f"}},
           {{"model.layers.{i}.mlp.up_proj.weight", "f h"},
            kSameAsHf,
            {"layers.{i}.mlp.up_proj.kernel", "h f"}},
           {{"model.layers.{i}.mlp.down_proj.weight", "h f"},
            kSameAsHf,
            {"layers.{i}.mlp.down_proj.kernel", "f h"}},
           {{"model.layers.{i}.post_feedforward_layernorm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.post_ffw_norm.scale", "h"}},
       }},
      {HasExperts,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.router.proj.weight", "x h"},
            kSameAsHf,
            {"layers.{i}.moe.router_logits", "h x"}},
           {{"model.layers.{i}.router.scale", "h"},
            kSameAsHf,
            {"layers.{i}.moe.router_scale", "h"}},
           {{"model.layers.{i}.router.per_expert_scale", "x"},
            kSameAsHf,
            {"layers.{i}.moe.per_expert_scale", "x"}},
           {{"model.layers.{i}.experts.gate_up_proj", "x (g m) h"},
            kSameAsHf,
            {"layers.{i}.moe.gating_einsum", "x g m h"}},
           {{"model.layers.{i}.experts.down_proj", "x h m"},
            kSameAsHf,
            {"layers.{i}.moe.linear", "x m h"}},
           {{"model.layers.{i}.pre_feedforward_layernorm_2.weight", "h"},
            kSameAsHf,
            {"layers.{i}.moe_pre_ffw_norm.scale", "h"}},
           {{"model.layers.{i}.post_feedforward_layernorm_1.weight", "h"},
            kSameAsHf,
            {"layers.{i}.dense_post_ffw_norm.scale", "h"}},
           {{"model.layers.{i}.post_feedforward_layernorm_2.weight", "h"},
            kSameAsHf,
            {"layers.{i}.moe_post_ffw_norm.scale", "h"}},
       }},
      {PerLayerInput,
       /*each_layer=*/true,
       {
           {{"model.layers.{i}.per_layer_input_gate.weight", "p h"},
            kSameAsHf,
            {"layers.{i}.per_layer_input_gate.w", "h p"}},
           {{"model.layers.{i}.per_layer_projection.weight", "h p"},
            kSameAsHf,
            {"layers.{i}.per_layer_projection.w", "p h"}},
           {{"model.layers.{i}.post_per_layer_input_norm.weight", "h"},
            kSameAsHf,
            {"layers.{i}.post_per_layer_input_norm.scale", "h"}},
       }},
      {Always,
       /*each_layer=*/true,
       {{{"model.layers.{i}.layer_scalar", "o"}, kSameAsHf, {"layers.{i}.skip_scale", "o"}}}},
      {Always,
       /*each_layer=*/false,
       {{{"model.norm.weight", "h"}, kSameAsHf, {"final_norm.scale", "h"}}}},
  };
}

absl::Status Check(const ModelConfig& config, const LayoutOptions& layout) {
  if (!config.tie_word_embeddings) {
    return absl::InvalidArgumentError("an untied head is not known for this family");
  }
  if (config.attention_bias) {
    return absl::InvalidArgumentError("'attention_bias' is not known for this family");
  }
  if (layout.name == "maxtext") {
    return absl::InvalidArgumentError(
        "MaxText holds Gemma's embedding multiplied by the square root of the hidden size, which "
        "bfloat16 rounds: that cannot be refitted bit for bit");
  }
  return absl::OkStatus();
}

}  // namespace

const Family& Gemma4Family() {
  static const Family* const family = new Family{
      "gemma4",
      {"gemma4_text"},
      {"hf", "hf-fused", "tunix"},
      Sizes,
      Groups(),
      {"model.vision_tower.", "model.audio_tower.", "model.embed_vision.", "model.embed_audio."},
      Check,
      /*scanned_layout=*/"",
      /*scanned_place=*/nullptr,
  };
  return *family;
}

}  // namespace weight_sync::refit
