// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/model_config.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/strict_json.h"

namespace weight_sync::refit {
namespace {

using nlohmann::json;

// Far above any model, and low enough that products of a few stay in int64_t.
constexpr int64_t kLargest = int64_t{1} << 31;

// Reads fields of one JSON object; the first error stays.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  const absl::Status& status() const { return status_; }

  const json* Find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  // The first of these names that is there and not null.
  int64_t Integer(std::initializer_list<const char*> names, int64_t otherwise) {
    for (const char* name : names) {
      const json* value = Find(name);
      if (value != nullptr) return Number(name, *value, 0);
    }
    return otherwise;
  }

  int64_t Required(const char* name) {
    const json* value = Find(name);
    if (value == nullptr) {
      Fail(absl::StrCat("has no '", name, "'"));
      return 1;
    }
    return Number(name, *value, 1);
  }

  bool Bool(const char* name, bool otherwise) {
    const json* value = Find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) Fail(absl::StrCat("'", name, "' is not true or false"));
    return value->is_boolean() && value->get<bool>();
  }

  std::string String(const char* name) {
    const json* value = Find(name);
    if (value == nullptr) return "";
    if (!value->is_string()) Fail(absl::StrCat("'", name, "' is not a string"));
    return value->is_string() ? value->get<std::string>() : "";
  }

  int64_t Number(absl::string_view name, const json& value, int64_t least) {
    if (!value.is_number_integer() || value.get<int64_t>() < least ||
        value.get<int64_t>() > kLargest) {
      Fail(absl::StrCat("'", name, "' is ", value.dump(), ", not a whole number from ", least,
                        " to ", kLargest));
      return 1;
    }
    return value.get<int64_t>();
  }

  void Fail(absl::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("config ", what));
  }

 private:
  const json& object_;
  absl::Status status_;
};

// As transformers 5.19's classes have it where config.json does not.
int64_t DefaultHeadDim(const ModelConfig& config) {
  if (config.model_type == "qwen3") return 128;
  if (config.model_type == "qwen3_next" || config.model_type == "gemma4_text") return 256;
  return config.hidden_size / std::max<int64_t>(1, config.num_attention_heads);
}

void ReadLayerTypes(Fields& fields, ModelConfig& config) {
  const size_t layers = static_cast<size_t>(config.num_hidden_layers);
  config.full_attention.assign(layers, true);
  const json* types = fields.Find("layer_types");
  if (types != nullptr) {
    if (!types->is_array() || types->size() != layers) {
      return fields.Fail(
          absl::StrCat("'layer_types' is not a list of num_hidden_layers = ", layers, " entries"));
    }
    for (size_t i = 0; i < layers; ++i) {
      const std::string type = (*types)[i].is_string() ? (*types)[i].get<std::string>() : "";
      // "attention" and "mamba" are older spellings.
      const bool full = type == "full_attention" || type == "attention";
      if (!full && type != "linear_attention" && type != "mamba" && type != "sliding_attention") {
        return fields.Fail(
            absl::StrCat("'layer_types' has the unknown entry ", (*types)[i].dump()));
      }
      config.full_attention[i] = full;
    }
  } else if (config.model_type == "qwen3_next") {
    const int64_t interval = fields.Integer({"full_attention_interval"}, 4);
    if (interval < 1) return fields.Fail("'full_attention_interval' is 0");
    for (size_t i = 0; i < layers; ++i) {
      config.full_attention[i] = (static_cast<int64_t>(i) + 1) % interval == 0;
    }
  } else if (config.model_type == "gemma4_text") {
    return fields.Fail("has no 'layer_types'");
  }
  // transformers' model does so whatever the list says.
  if (config.model_type == "gemma4_text") config.full_attention.back() = true;
}

void ReadExperts(Fields& fields, ModelConfig& config) {
  config.num_experts = fields.Integer({"num_experts", "num_local_experts"}, 0);
  config.moe_intermediate_size = fields.Integer({"moe_intermediate_size"}, 0);
  config.shared_expert_intermediate_size = fields.Integer({"shared_expert_intermediate_size"}, 0);
  const size_t layers = static_cast<size_t>(config.num_hidden_layers);
  const int64_t step = fields.Integer({"decoder_sparse_step"}, 1);
  if (step < 1) return fields.Fail("'decoder_sparse_step' is 0");
  config.sparse.assign(layers, false);
  if (config.num_experts == 0) return;
  for (size_t i = 0; i < layers; ++i) {
    config.sparse[i] = (static_cast<int64_t>(i) + 1) % step == 0;
  }
  const json* dense = fields.Find("mlp_only_layers");
  if (dense == nullptr) return;
  if (!dense->is_array()) return fields.Fail("'mlp_only_layers' is not a list");
  for (const json& layer : *dense) {
    const int64_t i = fields.Number("mlp_only_layers", layer, 0);
    if (i >= config.num_hidden_layers) {
      return fields.Fail(absl::StrCat("'mlp_only_layers' names layer ", i, " of ", layers));
    }
    config.sparse[static_cast<size_t>(i)] = false;
  }
}

// Since transformers 5.15 what differs by layer is in per_layer_config, where a layer that is not named
// is as all others; before, and on the hub, the full-attention layers' values are fields of their own.
void ReadGlobalAttention(Fields& fields, ModelConfig& config) {
  config.global_head_dim = fields.Integer({"global_head_dim"}, 0);
  config.num_global_key_value_heads = fields.Integer({"num_global_key_value_heads"}, 0);
  const json* by_layer = fields.Find("per_layer_config");
  if (by_layer != nullptr && !by_layer->is_object()) {
    return fields.Fail("'per_layer_config' is not an object");
  }
  if (by_layer != nullptr && !by_layer->empty()) {
    const auto full = std::count(config.full_attention.begin(), config.full_attention.end(), true);
    if (static_cast<int64_t>(by_layer->size()) != full) {
      return fields.Fail(absl::StrCat("'per_layer_config' has ", by_layer->size(), " entries for ",
                                      full, " full-attention layers"));
    }
    for (const auto& [layer, values] : by_layer->items()) {
      int64_t i;
      if (!absl::SimpleAtoi(layer, &i) || i < 0 || i >= config.num_hidden_layers ||
          !values.is_object()) {
        return fields.Fail(absl::StrCat("'per_layer_config' has the unknown entry '", layer, "'"));
      }
      Fields own(values);
      const int64_t head_dim = own.Integer({"head_dim"}, config.head_dim);
      const int64_t heads = own.Integer({"num_key_value_heads"}, config.num_key_value_heads);
      if (!own.status().ok()) return fields.Fail(own.status().message());
      if (!config.full_attention[static_cast<size_t>(i)]) {
        return fields.Fail(absl::StrCat("'per_layer_config' changes layer ", i,
                                        ", which has no full attention: not supported"));
      }
      const bool differs =
          (config.global_head_dim != 0 && config.global_head_dim != head_dim) ||
          (config.num_global_key_value_heads != 0 && config.num_global_key_value_heads != heads);
      if (differs) {
        return fields.Fail(absl::StrCat("'per_layer_config' gives layer ", i,
                                        " another form than a full-attention layer before it"));
      }
      config.global_head_dim = head_dim;
      config.num_global_key_value_heads = heads;
    }
  }
  if (config.global_head_dim == 0) {
    config.global_head_dim = by_layer == nullptr ? 512 : config.head_dim;
  }
  // Only layers whose values are their keys have another number of heads.
  if (config.num_global_key_value_heads == 0 || !config.attention_k_eq_v) {
    config.num_global_key_value_heads = config.num_key_value_heads;
  }
}

auto Tie(const ModelConfig& c) {
  return std::tie(c.model_type, c.multimodal, c.dtype, c.hidden_size, c.num_hidden_layers,
                  c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.intermediate_size,
                  c.vocab_size, c.tie_word_embeddings, c.attention_bias, c.mlp_bias, c.scaled_rope,
                  c.num_experts, c.moe_intermediate_size, c.shared_expert_intermediate_size,
                  c.full_attention, c.sparse, c.linear_num_key_heads, c.linear_num_value_heads,
                  c.linear_key_head_dim, c.linear_value_head_dim, c.linear_conv_kernel_dim,
                  c.global_head_dim, c.num_global_key_value_heads, c.hidden_size_per_layer_input,
                  c.vocab_size_per_layer_input, c.num_kv_shared_layers, c.attention_k_eq_v,
                  c.use_double_wide_mlp, c.enable_moe_block);
}

}  // namespace

bool operator==(const ModelConfig& a, const ModelConfig& b) { return Tie(a) == Tie(b); }

absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view text) {
  WS_ASSIGN_OR_RETURN(const json whole, ParseStrictJson(text));
  if (!whole.is_object()) return absl::InvalidArgumentError("config is not a JSON object");
  Fields outer(whole);
  const json* nested = outer.Find("text_config");
  if (nested != nullptr && !nested->is_object()) {
    return absl::InvalidArgumentError("config 'text_config' is not an object");
  }
  Fields fields(nested == nullptr ? whole : *nested);

  ModelConfig config;
  config.multimodal = nested != nullptr;
  config.model_type = fields.String("model_type");
  if (config.model_type.empty()) fields.Fail("has no 'model_type'");
  std::string dtype = fields.String("dtype");
  if (dtype.empty()) dtype = fields.String("torch_dtype");
  if (dtype.empty() && nested != nullptr) dtype = outer.String("dtype");
  if (dtype.empty() && nested != nullptr) dtype = outer.String("torch_dtype");
  if (!dtype.empty()) {
    const absl::StatusOr<DType> known = ParseDType(dtype);
    if (!known.ok()) fields.Fail(absl::StrCat("'dtype': ", known.status().message()));
    config.dtype = known.value_or(DType::kBF16);
  }

  config.hidden_size = fields.Required("hidden_size");
  config.num_hidden_layers = fields.Required("num_hidden_layers");
  if (config.num_hidden_layers > 100'000) {
    fields.Fail(absl::StrCat("'num_hidden_layers' is ", config.num_hidden_layers));
    config.num_hidden_layers = 1;
  }
  config.num_attention_heads = fields.Required("num_attention_heads");
  config.num_key_value_heads = fields.Integer({"num_key_value_heads"}, config.num_attention_heads);
  config.head_dim = fields.Integer({"head_dim"}, DefaultHeadDim(config));
  config.intermediate_size = fields.Required("intermediate_size");
  config.vocab_size = fields.Required("vocab_size");
  // Gemma's classes tie unless told otherwise; the others do not.
  const bool gemma = config.model_type == "gemma4_text";
  config.tie_word_embeddings =
      fields.Bool("tie_word_embeddings", outer.Bool("tie_word_embeddings", gemma));
  config.attention_bias = fields.Bool("attention_bias", false);
  config.mlp_bias = fields.Bool("mlp_bias", false);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const json* rope = fields.Find(name);
    if (rope == nullptr || !rope->is_object()) continue;
    config.scaled_rope |= rope->value("rope_type", json()) == "llama3";
  }
  ReadLayerTypes(fields, config);
  ReadExperts(fields, config);

  config.linear_num_key_heads = fields.Integer({"linear_num_key_heads"}, 0);
  config.linear_num_value_heads = fields.Integer({"linear_num_value_heads"}, 0);
  config.linear_key_head_dim = fields.Integer({"linear_key_head_dim"}, 0);
  config.linear_value_head_dim = fields.Integer({"linear_value_head_dim"}, 0);
  config.linear_conv_kernel_dim = fields.Integer({"linear_conv_kernel_dim"}, 0);

  if (gemma) {
    config.attention_k_eq_v = fields.Bool("attention_k_eq_v", false);
    config.use_double_wide_mlp = fields.Bool("use_double_wide_mlp", false);
    config.enable_moe_block = fields.Bool("enable_moe_block", false);
    config.hidden_size_per_layer_input = fields.Integer({"hidden_size_per_layer_input"}, 256);
    config.vocab_size_per_layer_input = fields.Integer({"vocab_size_per_layer_input"}, 262'144);
    config.num_kv_shared_layers = fields.Integer({"num_kv_shared_layers"}, 0);
    if (config.num_kv_shared_layers > config.num_hidden_layers) {
      fields.Fail("'num_kv_shared_layers' is more than 'num_hidden_layers'");
    }
    ReadGlobalAttention(fields, config);
    config.sparse.assign(static_cast<size_t>(config.num_hidden_layers), config.enable_moe_block);
  }
  WS_RETURN_IF_ERROR(outer.status());
  WS_RETURN_IF_ERROR(fields.status());
  return config;
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::stringstream text;
  text << file.rdbuf();
  absl::StatusOr<ModelConfig> config = ParseModelConfig(text.str());
  if (!config.ok()) return base::Prefixed(path, config.status());
  return config;
}

}  // namespace weight_sync::refit
