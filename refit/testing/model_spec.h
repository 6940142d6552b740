// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: models of the four families by their sizes, tiny ones and published ones, and the
// config.json of each in both spellings that exist.
//
// Includes nothing of refit/maps, and is written from the models' documentation: what maps are
// compared with must not be made from them.
//
//   for (const ModelSpec& model : TinyModels()) ParseModelConfig(HubConfigJson(model));

#ifndef WEIGHT_SYNC_REFIT_TESTING_MODEL_SPEC_H_
#define WEIGHT_SYNC_REFIT_TESTING_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weight_sync::refit::testing {

// The vision and audio towers of a Gemma 4 checkpoint; 0 layers: there is none.
struct TowerSpec {
  int64_t vision_layers = 0;
  int64_t vision_hidden = 0;
  int64_t vision_mlp = 0;
  int64_t vision_heads = 0;
  int64_t vision_head_dim = 0;
  int64_t patch = 768;
  int64_t positions = 10240;
  bool clipped = false;
  bool standardize = false;
  int64_t audio_layers = 0;  // of the releases' sizes
};

struct ModelSpec {
  std::string name;        // of the case
  std::string model_type;  // of the text model
  std::string dtype = "bfloat16";

  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t mlp = 0;
  int64_t vocab = 0;
  bool tied = false;
  bool qk_norm = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool states_head_dim = true;  // else config.json leaves it to hidden / heads
  bool llama3_rope = false;

  // Experts.
  int64_t experts = 0;
  int64_t expert_mlp = 0;
  int64_t shared_mlp = 0;
  std::vector<int64_t> dense_layers;

  // Qwen3-Next: every interval-th layer has full attention.
  int64_t interval = 0;
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t conv = 0;

  // Gemma 4: every full_every-th layer has full attention, and the last.
  int64_t full_every = 0;
  int64_t global_head_dim = 0;
  int64_t global_kv_heads = 0;  // of layers whose values are their keys
  int64_t ple = 0;
  int64_t ple_vocab = 0;
  int64_t shared_kv_layers = 0;
  bool double_wide = false;
  bool k_eq_v = false;
  bool moe_block = false;
  bool multimodal = false;  // config nested in text_config, names under model.language_model

  // What the checkpoint holds and config.json does not say.
  bool lm_head_on_disk = false;    // though tied
  bool shared_kv_on_disk = false;  // though not used
  bool mtp = false;
  TowerSpec towers;

  // As published, or computed by hand for the tiny ones: tensors and elements on disk.
  int64_t tensors = 0;
  int64_t elements = 0;

  bool is_moe() const { return model_type == "qwen3_moe"; }
  bool is_next() const { return model_type == "qwen3_next"; }
  bool is_gemma() const { return model_type == "gemma4_text"; }
  bool full_attention(int64_t layer) const;
  bool shares_kv(int64_t layer) const { return layer >= layers - shared_kv_layers; }
  bool sparse(int64_t layer) const;
  std::string prefix() const { return multimodal ? "model.language_model." : "model."; }
};

// Each small enough for an element-wise proof, with sizes that differ from one another.
std::vector<ModelSpec> TinyModels();
// Dies for a name that is not there.
ModelSpec TinyModel(const std::string& name);

// The releases. Names and shapes only: they are large.
std::vector<ModelSpec> PublishedModels();

// config.json as the Hugging Face hub has it, and as transformers 5.15 and later write it.
std::string HubConfigJson(const ModelSpec& model);
std::string TransformersConfigJson(const ModelSpec& model);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_MODEL_SPEC_H_
