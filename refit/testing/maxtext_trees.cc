// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MaxText's trees of family_trees.h.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::refit::testing {
namespace {

// A layer's tensors by the end of their names.
using Layer = std::map<std::string, Elements>;

Elements ExpertStack(const ModelSpec& m, const std::string& h, const std::string& proj,
                     const ByName& hf) {
  std::vector<Elements> experts;
  for (int64_t e = 0; e < m.experts; ++e) {
    experts.push_back(Transposed(hf(absl::StrCat(h, "mlp.experts.", e, ".", proj, ".weight"))));
  }
  return StackedAt(0, experts);
}

Layer QwenLayer(const ModelSpec& m, int64_t i, const ByName& hf) {
  const std::string h = absl::StrCat("model.layers.", i, "."), a = h + "self_attn.";
  Layer layer;
  layer["pre_self_attention_layer_norm-scale"] = Same(hf(h + "input_layernorm.weight"));
  layer["post_self_attention_layer_norm-scale"] = Same(hf(h + "post_attention_layernorm.weight"));
  layer["self_attention-query-kernel"] = Heads(hf(a + "q_proj.weight"), m.heads);
  layer["self_attention-key-kernel"] = Heads(hf(a + "k_proj.weight"), m.kv_heads);
  layer["self_attention-value-kernel"] = Heads(hf(a + "v_proj.weight"), m.kv_heads);
  layer["self_attention-out-kernel"] = OutHeads(hf(a + "o_proj.weight"), m.heads);
  if (m.qkv_bias) {
    layer["self_attention-query-bias"] = SplitBias(hf(a + "q_proj.bias"), m.heads);
    layer["self_attention-key-bias"] = SplitBias(hf(a + "k_proj.bias"), m.kv_heads);
    layer["self_attention-value-bias"] = SplitBias(hf(a + "v_proj.bias"), m.kv_heads);
  }
  if (m.qk_norm) {
    layer["self_attention-query_norm-scale"] = Same(hf(a + "q_norm.weight"));
    layer["self_attention-key_norm-scale"] = Same(hf(a + "k_norm.weight"));
  }
  if (m.sparse(i)) {
    layer["moe_block-gate-kernel"] = Transposed(hf(h + "mlp.gate.weight"));
    layer["moe_block-wi_0"] = ExpertStack(m, h, "gate_proj", hf);
    layer["moe_block-wi_1"] = ExpertStack(m, h, "up_proj", hf);
    layer["moe_block-wo"] = ExpertStack(m, h, "down_proj", hf);
  } else {
    layer["mlp-wi_0-kernel"] = Transposed(hf(h + "mlp.gate_proj.weight"));
    layer["mlp-wi_1-kernel"] = Transposed(hf(h + "mlp.up_proj.weight"));
    layer["mlp-wo-kernel"] = Transposed(hf(h + "mlp.down_proj.weight"));
  }
  return layer;
}

Layer NextLayer(const ModelSpec& m, int64_t i, const ByName& hf) {
  const std::string h = absl::StrCat("model.layers.", i, ".");
  Layer layer;
  layer["input_layernorm-scale"] = Same(hf(h + "input_layernorm.weight"));
  layer["post_attention_layernorm-scale"] = Same(hf(h + "post_attention_layernorm.weight"));
  if (m.full_attention(i)) {
    const std::string a = h + "self_attn.", x = "attention-attention-";
    // A head of q_proj is its query rows and then its gate rows: heads of 2 * head_dim.
    layer[x + "query-kernel"] = Heads(hf(a + "q_proj.weight"), m.heads);
    layer[x + "key-kernel"] = Heads(hf(a + "k_proj.weight"), m.kv_heads);
    layer[x + "value-kernel"] = Heads(hf(a + "v_proj.weight"), m.kv_heads);
    layer[x + "out-kernel"] = Transposed(hf(a + "o_proj.weight"));
    layer[x + "query_norm-scale"] = Same(hf(a + "q_norm.weight"));
    layer[x + "key_norm-scale"] = Same(hf(a + "k_norm.weight"));
  } else {
    const std::string a = h + "linear_attn.";
    layer["attention-in_proj_qkvz-kernel"] = Transposed(hf(a + "in_proj_qkvz.weight"));
    layer["attention-in_proj_ba-kernel"] = Transposed(hf(a + "in_proj_ba.weight"));
    layer["attention-conv1d-kernel"] = ConvKernel(hf(a + "conv1d.weight"));
    layer["attention-A_log"] = Same(hf(a + "A_log"));
    layer["attention-dt_bias"] = Same(hf(a + "dt_bias"));
    layer["attention-norm-rms_norm-scale"] = Same(hf(a + "norm.weight"));
    layer["attention-out_proj-kernel"] = Transposed(hf(a + "out_proj.weight"));
  }
  layer["mlp-routed_experts-gate-kernel"] = Transposed(hf(h + "mlp.gate.weight"));
  layer["mlp-routed_experts-wi_0"] = ExpertStack(m, h, "gate_proj", hf);
  layer["mlp-routed_experts-wi_1"] = ExpertStack(m, h, "up_proj", hf);
  layer["mlp-routed_experts-wo"] = ExpertStack(m, h, "down_proj", hf);
  const std::string s = h + "mlp.shared_expert.";
  layer["mlp-shared_expert-wi_0-kernel"] = Transposed(hf(s + "gate_proj.weight"));
  layer["mlp-shared_expert-wi_1-kernel"] = Transposed(hf(s + "up_proj.weight"));
  layer["mlp-shared_expert-wo-kernel"] = Transposed(hf(s + "down_proj.weight"));
  layer["mlp-shared_expert_gate-kernel"] = Transposed(hf(h + "mlp.shared_expert_gate.weight"));
  return layer;
}

// Layers of the same tensors, stacked tensor by tensor.
Layer Stacked(int axis, const std::vector<Layer>& layers) {
  Layer stacked;
  for (const auto& [suffix, first] : layers[0]) {
    std::vector<Elements> parts;
    for (const Layer& layer : layers) parts.push_back(layer.at(suffix));
    stacked[suffix] = StackedAt(axis, parts);
  }
  return stacked;
}

}  // namespace

std::vector<Elements> MaxTextTree(const ModelSpec& m, const std::vector<Elements>& tensors,
                                  const MaxTextOptions& options) {
  const ByName hf(tensors);
  std::vector<Elements> tree;
  const auto add = [&](const std::string& name, Elements elements) {
    elements.name = "params-" + name;
    tree.push_back(std::move(elements));
  };
  const auto add_layer = [&](const std::string& prefix, const Layer& layer) {
    for (const auto& [suffix, elements] : layer) add(prefix + suffix, elements);
  };
  const int64_t vocab = options.vocab > 0 ? options.vocab : m.vocab;
  add("token_embedder-embedding", PaddedAt(0, vocab, Same(hf("model.embed_tokens.weight"))));
  if (!m.tied) {
    add("decoder-logits_dense-kernel", PaddedAt(1, vocab, Transposed(hf("lm_head.weight"))));
  }
  add("decoder-decoder_norm-scale", Same(hf("model.norm.weight")));

  std::vector<Layer> layers;
  for (int64_t i = 0; i < m.layers; ++i) {
    layers.push_back(m.is_next() ? NextLayer(m, i, hf) : QwenLayer(m, i, hf));
    if (!options.scanned) add_layer(absl::StrCat("decoder-layers_", i, "-"), layers.back());
  }
  if (!options.scanned) return tree;
  if (!m.is_next()) {
    add_layer("decoder-layers-", Stacked(options.scan_axis, layers));
    return tree;
  }
  // Blocks of interval - 1 linear-attention layers and one of full attention.
  std::vector<Layer> blocks, last;
  for (int64_t i = 0; i < m.layers; i += m.interval) {
    const auto begin = layers.begin() + i, end = begin + m.interval - 1;
    blocks.push_back(Stacked(options.scan_axis, std::vector<Layer>(begin, end)));
    last.push_back(*end);
  }
  add_layer("decoder-layers-local_layers-", Stacked(options.scan_axis, blocks));
  add_layer("decoder-layers-global_layer-", Stacked(options.scan_axis, last));
  return tree;
}

}  // namespace weight_sync::refit::testing
