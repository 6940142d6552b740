// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The models of model_spec.h.

#include <cstdint>
#include <string>
#include <vector>

#include "refit/testing/model_spec.h"

namespace weight_sync::refit::testing {
namespace {

ModelSpec Base(const std::string& name, const std::string& model_type, int64_t tensors,
               int64_t elements) {
  ModelSpec m;
  m.name = name;
  m.model_type = model_type;
  m.qk_norm = model_type == "qwen3" || model_type == "qwen3_moe" || model_type == "qwen3_next";
  m.qkv_bias = model_type == "qwen2";
  m.tensors = tensors;
  m.elements = elements;
  return m;
}

ModelSpec Tiny(const std::string& name, const std::string& model_type, int64_t tensors,
               int64_t elements) {
  ModelSpec m = Base(name, model_type, tensors, elements);
  m.hidden = 8;
  m.heads = 4;
  m.kv_heads = 2;
  m.head_dim = 3;
  m.mlp = 10;
  m.vocab = 11;
  m.layers = 2;
  return m;
}

ModelSpec TinyMoe(const std::string& name, int64_t tensors, int64_t elements) {
  ModelSpec m = Tiny(name, "qwen3_moe", tensors, elements);
  m.expert_mlp = 5;
  m.experts = 3;
  return m;
}

ModelSpec TinyNext(const std::string& name, int64_t tensors, int64_t elements) {
  ModelSpec m = Tiny(name, "qwen3_next", tensors, elements);
  m.head_dim = 6;
  m.expert_mlp = 5;
  m.experts = 3;
  m.shared_mlp = 7;
  m.layers = 4;
  m.interval = 4;
  m.key_heads = 2;
  m.value_heads = 4;
  m.key_dim = 3;
  m.value_dim = 2;
  m.conv = 4;
  return m;
}

ModelSpec TinyGemma(const std::string& name, int64_t tensors, int64_t elements) {
  ModelSpec m = Tiny(name, "gemma4_text", tensors, elements);
  m.tied = true;
  m.head_dim = 4;
  m.global_head_dim = 6;
  m.layers = 6;
  m.full_every = 3;
  m.ple_vocab = 11;
  return m;
}

ModelSpec TinyGemmaPle(const std::string& name, int64_t tensors, int64_t elements) {
  ModelSpec m = TinyGemma(name, tensors, elements);
  m.ple = 2;
  m.shared_kv_layers = 2;
  m.double_wide = true;
  return m;
}

ModelSpec TinyGemmaMoe(const std::string& name, int64_t tensors, int64_t elements) {
  ModelSpec m = TinyGemma(name, tensors, elements);
  m.global_kv_heads = 1;
  m.k_eq_v = true;
  m.moe_block = true;
  m.experts = 3;
  m.expert_mlp = 5;
  return m;
}

ModelSpec Dense(const std::string& name, const std::string& model_type, int64_t hidden,
                int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t mlp, int64_t vocab,
                int64_t layers, bool tied, int64_t tensors, int64_t elements) {
  ModelSpec m = Base(name, model_type, tensors, elements);
  m.hidden = hidden;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = head_dim;
  m.states_head_dim = model_type != "qwen2";
  m.mlp = mlp;
  m.vocab = vocab;
  m.layers = layers;
  m.tied = tied;
  return m;
}

ModelSpec Gemma(const std::string& name, int64_t hidden, int64_t heads, int64_t kv_heads,
                int64_t mlp, int64_t layers, int64_t full_every, int64_t tensors,
                int64_t elements) {
  ModelSpec m = Dense(name, "gemma4_text", hidden, heads, kv_heads, 256, mlp, 262144, layers,
                      /*tied=*/true, tensors, elements);
  m.global_head_dim = 512;
  m.full_every = full_every;
  m.ple_vocab = 262144;
  m.multimodal = true;
  return m;
}

void AddTowers(bool large, ModelSpec& m) {
  m.towers.vision_layers = large ? 27 : 16;
  m.towers.vision_hidden = large ? 1152 : 768;
  m.towers.vision_mlp = large ? 4304 : 3072;
  m.towers.vision_heads = large ? 16 : 12;
  m.towers.vision_head_dim = large ? 72 : 64;
  m.towers.clipped = !large;
  m.towers.standardize = large;
  m.towers.audio_layers = large ? 0 : 12;
}

}  // namespace

std::vector<ModelSpec> TinyModels() {
  std::vector<ModelSpec> models;
  const auto add = [&](ModelSpec m) -> ModelSpec& { return models.emplace_back(std::move(m)); };

  add(Tiny("Qwen3Tied", "qwen3", 24, 1196)).tied = true;
  add(Tiny("Qwen3Untied", "qwen3", 25, 1284));
  {
    ModelSpec& m = add(Tiny("Qwen3TiedHeadOnDisk", "qwen3", 25, 1284));
    m.tied = true;
    m.lm_head_on_disk = true;
  }
  add(Tiny("Qwen2Tied", "qwen2", 26, 1232)).tied = true;
  add(Tiny("Llama", "llama", 21, 1272));
  {
    // 2 layers of q, k, v and o biases (12 + 6 + 6 + 8) and of mlp's (10 + 10 + 8) more.
    ModelSpec& m = add(Tiny("LlamaBiases", "llama", 35, 1272 + 2 * (32 + 28)));
    m.qkv_bias = m.o_bias = m.mlp_bias = true;
  }

  {
    // 2 layers of q, k, v and o biases more.
    ModelSpec& m = add(Tiny("Qwen3Biases", "qwen3", 33, 1284 + 2 * 32));
    m.qkv_bias = m.o_bias = true;
  }

  add(TinyMoe("Moe", 39, 1572));
  // A dense layer (3 tensors of 10 * 8) for a sparse one (a router of 3 * 8, 9 of 5 * 8).
  add(TinyMoe("MoeDenseLayer", 39 - 10 + 3, 1572 - 24 - 360 + 240)).dense_layers = {0};
  {
    ModelSpec& m = add(TinyMoe("MoeBiases", 39 + 8, 1572 + 2 * 32));
    m.qkv_bias = m.o_bias = true;
  }

  add(TinyNext("Next", 94, 4594));
  add(TinyNext("NextMtp", 120, 6102)).mtp = true;
  // Twice the layers: two blocks when they are scanned. Of "Next" 184 elements are of no layer.
  add(TinyNext("NextTwoBlocks", 185, 2 * (4594 - 184) + 184)).layers = 8;

  add(TinyGemmaPle("GemmaPle", 101, 5098));
  add(TinyGemmaPle("GemmaPleSharedKvOnDisk", 107, 5428)).shared_kv_on_disk = true;
  add(TinyGemmaMoe("GemmaMoe", 132, 6704));
  {
    // Layer 2 and 5 have a k_proj of 3 * 6 * 8 instead of 1 * 6 * 8.
    ModelSpec& m = add(TinyGemmaMoe("GemmaMoeThreeGlobalKvHeads", 132, 6704 + 2 * 96));
    m.global_kv_heads = 3;
  }
  for (const bool on_disk : {false, true}) {
    // Four sliding layers with k_proj and v_proj of 4 * 8 less, two full ones with k_proj of 2 * 6 * 8
    // more. Layer 4 lacks k_proj, v_proj and k_norm, layer 5 k_proj and k_norm, unless they are there
    // without use.
    const int64_t whole = 6704 - 4 * 2 * 32 + 2 * 96;
    ModelSpec& m = add(TinyGemmaMoe(on_disk ? "GemmaMoeSharedKvOnDisk" : "GemmaMoeSharedKv",
                                    on_disk ? 132 : 132 - 5,
                                    on_disk ? whole : whole - int64_t{2} * 32 - 4 - 144 - 6));
    m.kv_heads = 1;
    m.global_kv_heads = 3;
    m.shared_kv_layers = 2;
    m.shared_kv_on_disk = on_disk;
  }
  {
    // q, k, v, o, gate, up, down with 4 clips each, 2 + 4 norms; patches, positions, projection.
    ModelSpec& m = add(TinyGemmaPle("GemmaPleMultimodal", 107 + 41 + 3,
                                    5428 + 4 * 16 + 3 * 24 + 28 + 2 * 2 + 4 * 4 + 12 + 40 + 32));
    m.shared_kv_on_disk = true;
    m.multimodal = true;
    m.towers.vision_layers = 1;
    m.towers.vision_hidden = 4;
    m.towers.vision_mlp = 6;
    m.towers.vision_heads = 2;
    m.towers.vision_head_dim = 2;
    m.towers.patch = 3;
    m.towers.positions = 5;
    m.towers.clipped = true;
  }
  {
    ModelSpec& m = add(TinyGemmaMoe("GemmaMoeMultimodal", 132, 6704));
    m.multimodal = true;
  }
  return models;
}

std::vector<ModelSpec> PublishedModels() {
  std::vector<ModelSpec> models;
  const auto add = [&](ModelSpec m) -> ModelSpec& { return models.emplace_back(std::move(m)); };
  const int64_t qwen = 151936;

  add(Dense("Qwen3-0.6B", "qwen3", 1024, 16, 8, 128, 3072, qwen, 28, true, 310, 596049920));
  add(Dense("Qwen3-0.6B, head on disk", "qwen3", 1024, 16, 8, 128, 3072, qwen, 28, true, 311,
            751632384))
      .lm_head_on_disk = true;
  add(Dense("Qwen3-1.7B", "qwen3", 2048, 16, 8, 128, 6144, qwen, 28, true, 310, 1720574976));
  add(Dense("Qwen3-1.7B, head on disk", "qwen3", 2048, 16, 8, 128, 6144, qwen, 28, true, 311,
            2031739904))
      .lm_head_on_disk = true;
  add(Dense("Qwen3-4B", "qwen3", 2560, 32, 8, 128, 9728, qwen, 36, true, 398, 4022468096));
  add(Dense("Qwen3-8B", "qwen3", 4096, 32, 8, 128, 12288, qwen, 36, false, 399, 8190735360));
  add(Dense("Qwen2.5-0.5B", "qwen2", 896, 14, 2, 64, 4864, qwen, 24, true, 290, 494032768));
  add(Dense("Qwen2.5-1.5B", "qwen2", 1536, 12, 2, 128, 8960, qwen, 28, true, 338, 1543714304));
  add(Dense("Llama-3.2-1B", "llama", 2048, 32, 8, 64, 8192, 128256, 16, true, 146, 1235814400))
      .llama3_rope = true;
  {
    ModelSpec& m = add(Dense("Llama-3.1-8B", "llama", 4096, 32, 8, 128, 14336, 128256, 32, false,
                             291, 8030261248));
    m.llama3_rope = true;
    m.states_head_dim = false;
  }
  {
    ModelSpec& m = add(Dense("Qwen3-30B-A3B", "qwen3_moe", 2048, 32, 4, 128, 6144, qwen, 48, false,
                             18867, 30532122624));
    m.experts = 128;
    m.expert_mlp = 768;
  }
  for (const bool mtp : {false, true}) {
    ModelSpec& m = add(Dense(mtp ? "Qwen3-Next-80B-A3B, MTP" : "Qwen3-Next-80B-A3B", "qwen3_next",
                             2048, 16, 2, 256, 5120, qwen, 48, false, mtp ? 75944 : 74391,
                             mtp ? 81324862720 : 79674391296));
    m.mtp = mtp;
    m.experts = 512;
    m.expert_mlp = 512;
    m.shared_mlp = 512;
    m.interval = 4;
    m.key_heads = 16;
    m.value_heads = 32;
    m.key_dim = 128;
    m.value_dim = 128;
    m.conv = 4;
  }

  // Gemma 4: the text model as transformers saves it, as the release has it, and the release.
  for (const char* form : {"text module", "text on disk", "release"}) {
    const std::string name = form;
    const bool on_disk = name != "text module", towers = name == "release";
    ModelSpec& e2b = add(Gemma("Gemma4-E2B, " + name, 1536, 8, 1, 6144, 35, 5,
                               towers    ? 2011
                               : on_disk ? 600
                                         : 540,
                               towers    ? 5123178979
                               : on_disk ? 4647449891
                                         : 4628569379));
    e2b.ple = 256;
    e2b.shared_kv_layers = 20;
    e2b.double_wide = true;
    e2b.shared_kv_on_disk = on_disk;
    if (towers) AddTowers(/*large=*/false, e2b);
  }
  for (const bool on_disk : {false, true}) {
    ModelSpec& e4b = add(Gemma(on_disk ? "Gemma4-E4B" : "Gemma4-E4B, module", 2560, 8, 2, 10240, 42,
                               6, on_disk ? 2130 : 2076, on_disk ? 7996157418 : 7941101802));
    e4b.ple = 256;
    e4b.shared_kv_layers = 18;
    e4b.shared_kv_on_disk = on_disk;
    AddTowers(/*large=*/false, e4b);
  }
  for (const bool towers : {false, true}) {
    const std::string form = towers ? "" : ", text";
    ModelSpec& a4b = add(Gemma("Gemma4-26B-A4B" + form, 2816, 16, 8, 2112, 30, 6,
                               towers ? 1013 : 657, towers ? 25805936206 : 25233141790));
    a4b.k_eq_v = true;
    a4b.global_kv_heads = 2;
    a4b.moe_block = true;
    a4b.experts = 128;
    a4b.expert_mlp = 704;
    if (towers) AddTowers(/*large=*/true, a4b);
    ModelSpec& b31 = add(Gemma("Gemma4-31B" + form, 5376, 32, 16, 21504, 60, 6, towers ? 1188 : 832,
                               towers ? 31273088876 : 30697345340));
    b31.k_eq_v = true;
    b31.global_kv_heads = 4;
    if (towers) AddTowers(/*large=*/true, b31);
  }
  return models;
}

}  // namespace weight_sync::refit::testing
