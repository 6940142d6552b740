// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The Hugging Face tensors of family_trees.h.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::refit::testing {
namespace {

class Writer {
 public:
  void Add(const std::string& name, std::vector<int64_t> shape) {
    Elements made;
    made.name = name;
    made.shape = std::move(shape);
    made.passes_through = passing_through_;
    tensors_.push_back(std::move(made));
  }
  void Weight(const std::string& name, std::vector<int64_t> shape) {
    Add(name + ".weight", std::move(shape));
  }
  void PassThroughFromHere() { passing_through_ = true; }
  std::vector<Elements> Take() { return std::move(tensors_); }

 private:
  bool passing_through_ = false;
  std::vector<Elements> tensors_;
};

void AddMlp(const std::string& p, int64_t hidden, int64_t mlp, Writer& w) {
  w.Weight(p + "gate_proj", {mlp, hidden});
  w.Weight(p + "up_proj", {mlp, hidden});
  w.Weight(p + "down_proj", {hidden, mlp});
}

void AddExperts(const std::string& p, const ModelSpec& m, Writer& w) {
  w.Weight(p + "gate", {m.experts, m.hidden});
  for (int64_t e = 0; e < m.experts; ++e) {
    AddMlp(absl::StrCat(p, "experts.", e, "."), m.hidden, m.expert_mlp, w);
  }
}

// `outputs`: rows of q_proj a head, in head_dims.
void AddAttention(const std::string& p, const ModelSpec& m, int64_t outputs, Writer& w) {
  const int64_t H = m.hidden, N = m.heads, K = m.kv_heads, D = m.head_dim;
  w.Weight(p + "q_proj", {outputs * N * D, H});
  if (m.qkv_bias) w.Add(p + "q_proj.bias", {N * D});
  w.Weight(p + "k_proj", {K * D, H});
  if (m.qkv_bias) w.Add(p + "k_proj.bias", {K * D});
  w.Weight(p + "v_proj", {K * D, H});
  if (m.qkv_bias) w.Add(p + "v_proj.bias", {K * D});
  w.Weight(p + "o_proj", {H, N * D});
  if (m.o_bias) w.Add(p + "o_proj.bias", {H});
  if (m.qk_norm) w.Weight(p + "q_norm", {D});
  if (m.qk_norm) w.Weight(p + "k_norm", {D});
}

void AddLayerNorms(const std::string& p, const ModelSpec& m, Writer& w) {
  w.Weight(p + "input_layernorm", {m.hidden});
  w.Weight(p + "post_attention_layernorm", {m.hidden});
}

void AddDenseLayer(const std::string& p, const ModelSpec& m, bool sparse, Writer& w) {
  AddAttention(p + "self_attn.", m, 1, w);
  if (sparse) {
    AddExperts(p + "mlp.", m, w);
  } else {
    AddMlp(p + "mlp.", m.hidden, m.mlp, w);
    if (m.mlp_bias) {
      w.Add(p + "mlp.gate_proj.bias", {m.mlp});
      w.Add(p + "mlp.up_proj.bias", {m.mlp});
      w.Add(p + "mlp.down_proj.bias", {m.hidden});
    }
  }
  AddLayerNorms(p, m, w);
}

void AddNextLayer(const std::string& p, const ModelSpec& m, bool full, Writer& w) {
  if (full) {
    AddAttention(p + "self_attn.", m, 2, w);
  } else {
    const std::string a = p + "linear_attn.";
    const int64_t keys = m.key_heads * m.key_dim, values = m.value_heads * m.value_dim;
    w.Weight(a + "in_proj_qkvz", {2 * keys + 2 * values, m.hidden});
    w.Weight(a + "in_proj_ba", {2 * m.value_heads, m.hidden});
    w.Weight(a + "conv1d", {2 * keys + values, 1, m.conv});
    w.Add(a + "A_log", {m.value_heads});
    w.Add(a + "dt_bias", {m.value_heads});
    w.Weight(a + "norm", {m.value_dim});
    w.Weight(a + "out_proj", {m.hidden, values});
  }
  AddExperts(p + "mlp.", m, w);
  AddMlp(p + "mlp.shared_expert.", m.hidden, m.shared_mlp, w);
  w.Weight(p + "mlp.shared_expert_gate", {1, m.hidden});
  AddLayerNorms(p, m, w);
}

void AddMtp(const ModelSpec& m, Writer& w) {
  w.Weight("mtp.fc", {m.hidden, 2 * m.hidden});
  w.Weight("mtp.norm", {m.hidden});
  w.Weight("mtp.pre_fc_norm_embedding", {m.hidden});
  w.Weight("mtp.pre_fc_norm_hidden", {m.hidden});
  AddNextLayer("mtp.layers.0.", m, /*full=*/true, w);
}

void AddGemmaLayer(const std::string& p, const ModelSpec& m, int64_t i, Writer& w) {
  const bool full = m.full_attention(i), alternative = full && m.k_eq_v;
  const bool shared = m.shares_kv(i), has_kv = !shared || m.shared_kv_on_disk;
  const int64_t H = m.hidden, d = full ? m.global_head_dim : m.head_dim;
  const int64_t k = alternative ? m.global_kv_heads : m.kv_heads;
  const std::string a = p + "self_attn.";
  w.Weight(a + "q_proj", {m.heads * d, H});
  if (has_kv) w.Weight(a + "k_proj", {k * d, H});
  if (has_kv && !alternative) w.Weight(a + "v_proj", {k * d, H});
  w.Weight(a + "o_proj", {H, m.heads * d});
  w.Weight(a + "q_norm", {d});
  if (has_kv) w.Weight(a + "k_norm", {d});
  AddMlp(p + "mlp.", H, m.double_wide && shared ? 2 * m.mlp : m.mlp, w);
  for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
    w.Weight(p + norm, {H});
  }
  if (m.ple > 0) {
    w.Weight(p + "per_layer_input_gate", {m.ple, H});
    w.Weight(p + "per_layer_projection", {H, m.ple});
    w.Weight(p + "post_per_layer_input_norm", {H});
  }
  if (m.moe_block) {
    w.Weight(p + "router.proj", {m.experts, H});
    w.Add(p + "router.scale", {H});
    w.Add(p + "router.per_expert_scale", {m.experts});
    w.Add(p + "experts.gate_up_proj", {m.experts, 2 * m.expert_mlp, H});
    w.Add(p + "experts.down_proj", {m.experts, H, m.expert_mlp});
    for (const char* norm : {"pre_feedforward_layernorm_2", "post_feedforward_layernorm_1",
                             "post_feedforward_layernorm_2"}) {
      w.Weight(p + norm, {H});
    }
  }
  w.Add(p + "layer_scalar", {1});
}

void AddLinear(const std::string& p, int64_t out, int64_t in, bool clipped, Writer& w) {
  w.Weight(p + ".linear", {out, in});
  if (!clipped) return;
  for (const char* clip : {".input_min", ".input_max", ".output_min", ".output_max"}) {
    w.Add(p + clip, {});
  }
}

void AddVisionTower(const ModelSpec& m, Writer& w) {
  const TowerSpec& t = m.towers;
  const int64_t vh = t.vision_hidden, attention = t.vision_heads * t.vision_head_dim;
  const std::string tower = "model.vision_tower.";
  w.Weight(tower + "patch_embedder.input_proj", {vh, t.patch});
  w.Add(tower + "patch_embedder.position_embedding_table", {2, t.positions, vh});
  for (int64_t i = 0; i < t.vision_layers; ++i) {
    const std::string p = absl::StrCat(tower, "encoder.layers.", i, ".");
    for (const char* proj : {"q_proj", "k_proj", "v_proj"}) {
      AddLinear(p + "self_attn." + proj, attention, vh, t.clipped, w);
    }
    AddLinear(p + "self_attn.o_proj", vh, attention, t.clipped, w);
    w.Weight(p + "self_attn.q_norm", {t.vision_head_dim});
    w.Weight(p + "self_attn.k_norm", {t.vision_head_dim});
    AddLinear(p + "mlp.gate_proj", t.vision_mlp, vh, t.clipped, w);
    AddLinear(p + "mlp.up_proj", t.vision_mlp, vh, t.clipped, w);
    AddLinear(p + "mlp.down_proj", vh, t.vision_mlp, t.clipped, w);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      w.Weight(p + norm, {vh});
    }
  }
  if (t.standardize) w.Add(tower + "std_bias", {vh});
  if (t.standardize) w.Add(tower + "std_scale", {vh});
  w.Weight("model.embed_vision.embedding_projection", {m.hidden, vh});
}

void AddAudioTower(const ModelSpec& m, Writer& w) {
  const int64_t ah = 1024, conv0 = 128, conv1 = 32, wide = 4096, kernel = 5, out = 1536;
  const std::string tower = "model.audio_tower.", conv = tower + "subsample_conv_projection.";
  w.Weight(conv + "layer0.conv", {conv0, 1, 3, 3});
  w.Weight(conv + "layer0.norm", {conv0});
  w.Weight(conv + "layer1.conv", {conv1, conv0, 3, 3});
  w.Weight(conv + "layer1.norm", {conv1});
  w.Weight(conv + "input_proj_linear", {ah, ah});
  for (int64_t i = 0; i < m.towers.audio_layers; ++i) {
    const std::string p = absl::StrCat(tower, "layers.", i, ".");
    for (const char* ff : {"feed_forward1.", "feed_forward2."}) {
      AddLinear(p + ff + "ffw_layer_1", wide, ah, true, w);
      AddLinear(p + ff + "ffw_layer_2", ah, wide, true, w);
      w.Weight(p + ff + "pre_layer_norm", {ah});
      w.Weight(p + ff + "post_layer_norm", {ah});
    }
    for (const char* proj : {"q_proj", "k_proj", "v_proj", "post"}) {
      AddLinear(p + "self_attn." + proj, ah, ah, true, w);
    }
    w.Weight(p + "self_attn.relative_k_proj", {ah, ah});
    w.Add(p + "self_attn.per_dim_scale", {128});
    AddLinear(p + "lconv1d.linear_start", 2 * ah, ah, true, w);
    AddLinear(p + "lconv1d.linear_end", ah, ah, true, w);
    w.Weight(p + "lconv1d.depthwise_conv1d", {ah, 1, kernel});
    w.Weight(p + "lconv1d.pre_layer_norm", {ah});
    w.Weight(p + "lconv1d.conv_norm", {ah});
    for (const char* norm : {"norm_pre_attn", "norm_post_attn", "norm_out"}) {
      w.Weight(p + norm, {ah});
    }
  }
  w.Weight(tower + "output_proj", {out, ah});
  w.Add(tower + "output_proj.bias", {out});
  w.Weight("model.embed_audio.embedding_projection", {m.hidden, out});
}

}  // namespace

std::vector<Elements> HfShapes(const ModelSpec& m) {
  Writer w;
  const std::string model = m.prefix();
  w.Weight(model + "embed_tokens", {m.vocab, m.hidden});
  if (m.is_gemma() && m.ple > 0) {
    w.Weight(model + "embed_tokens_per_layer", {m.ple_vocab, m.layers * m.ple});
    w.Weight(model + "per_layer_model_projection", {m.layers * m.ple, m.hidden});
    w.Weight(model + "per_layer_projection_norm", {m.ple});
  }
  for (int64_t i = 0; i < m.layers; ++i) {
    const std::string p = absl::StrCat(model, "layers.", i, ".");
    if (m.is_gemma()) {
      AddGemmaLayer(p, m, i, w);
    } else if (m.is_next()) {
      AddNextLayer(p, m, m.full_attention(i), w);
    } else {
      AddDenseLayer(p, m, m.sparse(i), w);
    }
  }
  w.Weight(model + "norm", {m.hidden});
  if (!m.tied || m.lm_head_on_disk) w.Weight("lm_head", {m.vocab, m.hidden});
  w.PassThroughFromHere();
  if (m.mtp) AddMtp(m, w);
  if (m.towers.vision_layers > 0) AddVisionTower(m, w);
  if (m.towers.audio_layers > 0) AddAudioTower(m, w);
  return w.Take();
}

std::vector<Elements> HfTensors(const ModelSpec& m) {
  std::vector<Elements> tensors = HfShapes(m);
  uint32_t next = 1;
  for (Elements& tensor : tensors) {
    if (m.tied && tensor.name == "lm_head.weight") {
      tensor.ids = tensors[0].ids;
      continue;
    }
    for (int64_t n = 0; n < tensor.size(); ++n) tensor.ids.push_back(next++);
  }
  return tensors;
}

std::vector<Elements> HfFused(const ModelSpec& m, const std::vector<Elements>& hf) {
  const ByName find(hf);
  std::vector<Elements> fused;
  for (const Elements& tensor : hf) {
    const bool expert = absl::StrContains(tensor.name, ".mlp.experts.") && !tensor.passes_through;
    if (!expert) {
      fused.push_back(tensor);
      continue;
    }
    if (!absl::EndsWith(tensor.name, ".experts.0.gate_proj.weight")) continue;
    const std::string p =
        tensor.name.substr(0, tensor.name.size() - std::string("0.gate_proj.weight").size());
    const int64_t E = m.experts, M = m.expert_mlp, H = m.hidden;
    const auto expert_of = [&](int64_t e, const std::string& proj) -> const Elements& {
      return find(absl::StrCat(p, e, ".", proj, "_proj.weight"));
    };
    Elements gate_up, down;
    gate_up.shape = {E, 2 * M, H};
    down.shape = {E, H, M};
    if (!tensor.ids.empty()) {
      gate_up = FromFormula(gate_up.shape, [&](const Index& x) {
        const int64_t e = x[0], row = x[1], h = x[2];
        return row < M ? expert_of(e, "gate").at({row, h}) : expert_of(e, "up").at({row - M, h});
      });
      down = FromFormula(down.shape, [&](const Index& x) {
        const int64_t e = x[0], h = x[1], row = x[2];
        return expert_of(e, "down").at({h, row});
      });
    }
    gate_up.name = p + "gate_up_proj";
    down.name = p + "down_proj";
    fused.push_back(gate_up);
    fused.push_back(down);
  }
  return fused;
}

ByName::ByName(const std::vector<Elements>& tensors) {
  for (const Elements& tensor : tensors) {
    ABSL_CHECK(by_name_.emplace(tensor.name, &tensor).second) << tensor.name << " twice";
  }
}

const Elements& ByName::operator()(const std::string& name) const {
  const auto found = by_name_.find(name);
  ABSL_CHECK(found != by_name_.end()) << "no tensor '" << name << "'";
  return *found->second;
}

}  // namespace weight_sync::refit::testing
