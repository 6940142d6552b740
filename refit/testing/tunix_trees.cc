// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// tunix's trees of family_trees.h.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::refit::testing {
namespace {

class Tree {
 public:
  void Add(const std::string& name, Elements elements) {
    elements.name = name;
    tensors_.push_back(std::move(elements));
  }
  // Held by the trainer, and part of no HF tensor.
  void AddUnsent(const std::string& name, std::vector<int64_t> shape) {
    Elements held = FromFormula(std::move(shape), [](const Index&) { return kNoId; });
    held.sent = false;
    Add(name, std::move(held));
  }
  std::vector<Elements> Take() { return std::move(tensors_); }

 private:
  std::vector<Elements> tensors_;
};

void AddMlp(const std::string& p, const std::string& h, const ByName& hf, Tree& tree) {
  for (const char* proj : {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    tree.Add(p + proj + ".kernel", Transposed(hf(h + proj + ".weight")));
  }
}

void AddQwenLayer(const ModelSpec& m, int64_t i, const ByName& hf, Tree& tree) {
  const std::string p = absl::StrCat("layers.", i, "."), h = absl::StrCat("model.layers.", i, ".");
  tree.Add(p + "input_layernorm.w", Same(hf(h + "input_layernorm.weight")));
  tree.Add(p + "post_attention_layernorm.w", Same(hf(h + "post_attention_layernorm.weight")));
  tree.Add(p + "attn.q_proj.w", Heads(hf(h + "self_attn.q_proj.weight"), m.heads));
  tree.Add(p + "attn.k_proj.w", Heads(hf(h + "self_attn.k_proj.weight"), m.kv_heads));
  tree.Add(p + "attn.v_proj.w", Heads(hf(h + "self_attn.v_proj.weight"), m.kv_heads));
  tree.Add(p + "attn.o_proj.w", OutHeads(hf(h + "self_attn.o_proj.weight"), m.heads));
  if (m.model_type == "qwen2") {  // tunix holds no other model's biases
    tree.Add(p + "attn.q_bias", Same(hf(h + "self_attn.q_proj.bias")));
    tree.Add(p + "attn.k_bias", Same(hf(h + "self_attn.k_proj.bias")));
    tree.Add(p + "attn.v_bias", Same(hf(h + "self_attn.v_proj.bias")));
  }
  if (m.qk_norm) {
    tree.Add(p + "attn.q_norm.w", Same(hf(h + "self_attn.q_norm.weight")));
    tree.Add(p + "attn.k_norm.w", Same(hf(h + "self_attn.k_norm.weight")));
  }
  if (!m.sparse(i)) return AddMlp(p, h, hf, tree);
  tree.Add(p + "mlp.router.kernel", Transposed(hf(h + "mlp.gate.weight")));
  for (const char* proj : {"gate_proj", "up_proj", "down_proj"}) {
    std::vector<Elements> experts;
    for (int64_t e = 0; e < m.experts; ++e) {
      experts.push_back(Transposed(hf(absl::StrCat(h, "mlp.experts.", e, ".", proj, ".weight"))));
    }
    tree.Add(p + "mlp." + proj, StackedAt(0, experts));
  }
}

void AddGemmaLayer(const ModelSpec& m, int64_t i, const ByName& hf, Tree& tree) {
  const std::string p = absl::StrCat("layers.", i, ".");
  const std::string h = absl::StrCat(m.prefix(), "layers.", i, "."), a = h + "self_attn.";
  const bool full = m.full_attention(i);
  const int64_t H = m.hidden, d = full ? m.global_head_dim : m.head_dim;
  tree.Add(p + "attn.q_einsum.w", HeadsFirst(hf(a + "q_proj.weight"), m.heads));
  tree.Add(p + "attn.attn_vec_einsum.w", OutHeads(hf(a + "o_proj.weight"), m.heads));
  tree.Add(p + "attn._query_norm.scale", Same(hf(a + "q_norm.weight")));
  if (!hf.has(a + "k_proj.weight")) {
    if (full && m.k_eq_v) {
      tree.AddUnsent(p + "attn.k_einsum.w", {m.global_kv_heads, H, d});
    } else {
      tree.AddUnsent(p + "attn.kv_einsum.w", {2, m.kv_heads, H, d});
    }
    tree.AddUnsent(p + "attn._key_norm.scale", {d});
  } else {
    const Elements& key = hf(a + "k_proj.weight");
    tree.Add(p + "attn._key_norm.scale", Same(hf(a + "k_norm.weight")));
    if (full && m.k_eq_v) {
      tree.Add(p + "attn.k_einsum.w", HeadsFirst(key, m.global_kv_heads));
    } else {
      const Elements& value = hf(a + "v_proj.weight");
      tree.Add(p + "attn.kv_einsum.w", FromFormula({2, m.kv_heads, H, d}, [&](const Index& x) {
                 return (x[0] == 0 ? key : value).at({x[1] * d + x[3], x[2]});
               }));
    }
  }
  AddMlp(p, h, hf, tree);
  tree.Add(p + "pre_attention_norm.scale", Same(hf(h + "input_layernorm.weight")));
  tree.Add(p + "post_attention_norm.scale", Same(hf(h + "post_attention_layernorm.weight")));
  tree.Add(p + "pre_ffw_norm.scale", Same(hf(h + "pre_feedforward_layernorm.weight")));
  tree.Add(p + "post_ffw_norm.scale", Same(hf(h + "post_feedforward_layernorm.weight")));
  tree.Add(p + "skip_scale", Same(hf(h + "layer_scalar")));
  if (m.ple > 0) {
    tree.Add(p + "per_layer_input_gate.w", Transposed(hf(h + "per_layer_input_gate.weight")));
    tree.Add(p + "per_layer_projection.w", Transposed(hf(h + "per_layer_projection.weight")));
    tree.Add(p + "post_per_layer_input_norm.scale",
             Same(hf(h + "post_per_layer_input_norm.weight")));
  }
  if (!m.moe_block) return;
  const Elements& gate_up = hf(h + "experts.gate_up_proj");
  const Elements& down = hf(h + "experts.down_proj");
  const int64_t E = m.experts, M = m.expert_mlp;
  tree.Add(p + "moe.gating_einsum", FromFormula({E, 2, M, H}, [&](const Index& x) {
             return gate_up.at({x[0], x[1] * M + x[2], x[3]});
           }));
  tree.Add(p + "moe.linear",
           FromFormula({E, M, H}, [&](const Index& x) { return down.at({x[0], x[2], x[1]}); }));
  tree.Add(p + "moe.router_logits", Transposed(hf(h + "router.proj.weight")));
  tree.Add(p + "moe.router_scale", Same(hf(h + "router.scale")));
  tree.Add(p + "moe.per_expert_scale", Same(hf(h + "router.per_expert_scale")));
  tree.Add(p + "moe_pre_ffw_norm.scale", Same(hf(h + "pre_feedforward_layernorm_2.weight")));
  tree.Add(p + "dense_post_ffw_norm.scale", Same(hf(h + "post_feedforward_layernorm_1.weight")));
  tree.Add(p + "moe_post_ffw_norm.scale", Same(hf(h + "post_feedforward_layernorm_2.weight")));
}

void AddGemmaTop(const ModelSpec& m, const ByName& hf, Tree& tree) {
  const std::string h = m.prefix();
  tree.Add("final_norm.scale", Same(hf(h + "norm.weight")));
  if (m.ple == 0) return;
  const int64_t V = m.ple_vocab, H = m.hidden, L = m.layers, P = m.ple;
  const Elements& embed = hf(h + "embed_tokens_per_layer.weight");
  const Elements& projection = hf(h + "per_layer_model_projection.weight");
  tree.Add("embedder.per_layer_input_embedding", FromFormula({V, L, P}, [&](const Index& x) {
             return embed.at({x[0], x[1] * P + x[2]});
           }));
  tree.Add("embedder.per_layer_model_projection.w", FromFormula({H, L, P}, [&](const Index& x) {
             return projection.at({x[1] * P + x[2], x[0]});
           }));
  tree.Add("embedder.per_layer_projection_norm.scale",
           Same(hf(h + "per_layer_projection_norm.weight")));
}

}  // namespace

std::vector<Elements> TunixTree(const ModelSpec& m, const std::vector<Elements>& tensors) {
  const ByName hf(tensors);
  Tree tree;
  tree.Add("embedder.input_embedding", Same(hf(m.prefix() + "embed_tokens.weight")));
  for (int64_t i = 0; i < m.layers; ++i) {
    if (m.is_gemma()) {
      AddGemmaLayer(m, i, hf, tree);
    } else {
      AddQwenLayer(m, i, hf, tree);
    }
  }
  if (m.is_gemma()) {
    AddGemmaTop(m, hf, tree);
  } else {
    tree.Add("final_norm.w", Same(hf("model.norm.weight")));
    if (!m.tied) tree.Add("lm_head.w", Transposed(hf("lm_head.weight")));
  }
  return tree.Take();
}

}  // namespace weight_sync::refit::testing
