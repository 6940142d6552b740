// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/model_spec.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit::testing {
namespace {

// Members of a JSON object, values already as JSON.
using Members = std::vector<std::pair<std::string, std::string>>;

std::string Object(const Members& members) {
  return absl::StrCat("{",
                      absl::StrJoin(members, ", ",
                                    [](std::string* out, const auto& member) {
                                      absl::StrAppend(out, "\"", member.first,
                                                      "\": ", member.second);
                                    }),
                      "}");
}

std::string Quoted(const std::string& text) { return absl::StrCat("\"", text, "\""); }
std::string Number(int64_t value) { return absl::StrCat(value); }
std::string Bool(bool value) { return value ? "true" : "false"; }

std::string LayerTypes(const ModelSpec& m) {
  std::vector<std::string> types;
  for (int64_t i = 0; i < m.layers; ++i) {
    types.push_back(m.full_attention(i) ? "\"full_attention\""
                    : m.is_next()       ? "\"linear_attention\""
                                        : "\"sliding_attention\"");
  }
  return absl::StrCat("[", absl::StrJoin(types, ", "), "]");
}

// What both spellings share.
Members Common(const ModelSpec& m) {
  Members members = {
      {"model_type", Quoted(m.model_type)},
      {"hidden_size", Number(m.hidden)},
      {"num_hidden_layers", Number(m.layers)},
      {"num_attention_heads", Number(m.heads)},
      {"num_key_value_heads", Number(m.kv_heads)},
      {"intermediate_size", Number(m.mlp)},
      {"vocab_size", Number(m.vocab)},
      {"tie_word_embeddings", Bool(m.tied)},
      {"rms_norm_eps", "1e-06"},
  };
  if (m.states_head_dim) members.push_back({"head_dim", Number(m.head_dim)});
  if (m.model_type != "qwen2") members.push_back({"attention_bias", Bool(m.o_bias)});
  if (m.model_type == "llama") members.push_back({"mlp_bias", Bool(m.mlp_bias)});
  if (m.is_moe() || m.is_next()) {
    members.push_back({"moe_intermediate_size", Number(m.expert_mlp)});
    members.push_back({"decoder_sparse_step", "1"});
    members.push_back(
        {"mlp_only_layers", absl::StrCat("[", absl::StrJoin(m.dense_layers, ", "), "]")});
  }
  if (m.is_next()) {
    members.insert(members.end(), {{"shared_expert_intermediate_size", Number(m.shared_mlp)},
                                   {"linear_num_key_heads", Number(m.key_heads)},
                                   {"linear_num_value_heads", Number(m.value_heads)},
                                   {"linear_key_head_dim", Number(m.key_dim)},
                                   {"linear_value_head_dim", Number(m.value_dim)},
                                   {"linear_conv_kernel_dim", Number(m.conv)}});
  }
  if (m.is_gemma()) {
    members.insert(members.end(),
                   {{"layer_types", LayerTypes(m)},
                    {"hidden_size_per_layer_input", Number(m.ple)},
                    {"vocab_size_per_layer_input", Number(m.ple_vocab)},
                    {"num_kv_shared_layers", Number(m.shared_kv_layers)},
                    {"use_double_wide_mlp", Bool(m.double_wide)},
                    {"attention_k_eq_v", Bool(m.k_eq_v)},
                    {"enable_moe_block", Bool(m.moe_block)},
                    {"num_experts", m.experts > 0 ? Number(m.experts) : "null"},
                    {"moe_intermediate_size", m.experts > 0 ? Number(m.expert_mlp) : "null"}});
  }
  return members;
}

std::string Whole(const ModelSpec& m, const Members& text) {
  if (!m.multimodal) return Object(text);
  return Object({{"model_type", "\"gemma4\""},
                 {"image_token_id", "258880"},
                 {"tie_word_embeddings", Bool(m.tied)},
                 {"text_config", Object(text)},
                 {"vision_config", "{\"hidden_size\": 768, \"num_hidden_layers\": 16}"}});
}

}  // namespace

bool ModelSpec::full_attention(int64_t layer) const {
  if (is_next()) return (layer + 1) % interval == 0;
  if (is_gemma()) return (layer + 1) % full_every == 0 || layer == layers - 1;
  return true;
}

bool ModelSpec::sparse(int64_t layer) const {
  if (is_gemma()) return moe_block;
  return experts > 0 && std::count(dense_layers.begin(), dense_layers.end(), layer) == 0;
}

std::string HubConfigJson(const ModelSpec& m) {
  Members members = Common(m);
  members.push_back({"torch_dtype", Quoted(m.dtype)});
  if (m.llama3_rope) {
    members.push_back({"rope_scaling", "{\"factor\": 8.0, \"rope_type\": \"llama3\"}"});
  }
  if (m.is_moe() || m.is_next()) members.push_back({"num_experts", Number(m.experts)});
  if (m.is_next()) members.push_back({"full_attention_interval", Number(m.interval)});
  if (m.is_gemma()) {
    members.push_back({"global_head_dim", Number(m.global_head_dim)});
    members.push_back(
        {"num_global_key_value_heads", m.global_kv_heads > 0 ? Number(m.global_kv_heads) : "null"});
  }
  return Whole(m, members);
}

std::string TransformersConfigJson(const ModelSpec& m) {
  Members members = Common(m);
  members.push_back({"dtype", Quoted(m.dtype)});
  members.push_back({"transformers_version", "\"5.19.0\""});
  if (!m.is_gemma()) {
    members.push_back(
        {"rope_parameters", absl::StrCat("{\"rope_theta\": 10000.0, \"rope_type\": \"",
                                         m.llama3_rope ? "llama3" : "default", "\"}")});
  } else {
    members.push_back({"rope_parameters",
                       "{\"full_attention\": {\"rope_type\": \"proportional\"}, "
                       "\"sliding_attention\": {\"rope_type\": \"default\"}}"});
    Members by_layer;
    for (int64_t i = 0; i < m.layers; ++i) {
      if (!m.full_attention(i)) continue;
      Members own = {{"head_dim", Number(m.global_head_dim)}};
      if (m.k_eq_v && m.global_kv_heads > 0) {
        own.push_back({"num_key_value_heads", Number(m.global_kv_heads)});
      }
      by_layer.push_back({Number(i), Object(own)});
    }
    members.push_back({"per_layer_config", Object(by_layer)});
  }
  if (m.is_moe()) members.push_back({"num_local_experts", Number(m.experts)});
  if (m.is_next()) {
    members.push_back({"num_experts", Number(m.experts)});
    members.push_back({"layer_types", LayerTypes(m)});
  }
  if (m.model_type == "qwen3" || m.model_type == "qwen2") {
    members.push_back({"layer_types", LayerTypes(m)});
  }
  return Whole(m, members);
}

ModelSpec TinyModel(const std::string& name) {
  const std::vector<ModelSpec> models = TinyModels();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const ModelSpec& m) { return m.name == name; });
  ABSL_CHECK(found != models.end()) << "no tiny model '" << name << "'";
  return *found;
}

}  // namespace weight_sync::refit::testing
