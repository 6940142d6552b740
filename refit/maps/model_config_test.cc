// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/model_config.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HubConfigJson;
using testing::ModelSpec;
using testing::PublishedModels;
using testing::TinyModel;
using testing::TinyModels;
using testing::TransformersConfigJson;

// The config of a tiny model with one field changed; null leaves it out.
absl::Status ParseWith(const std::string& model, const std::string& field,
                       const std::string& value) {
  json config = json::parse(HubConfigJson(TinyModel(model)));
  config[field] = json::parse(value);
  return ParseModelConfig(config.dump()).status();
}

testing::ModelSpec Flat(ModelSpec m) {
  m.multimodal = false;
  return m;
}

TEST(ModelConfigTest, BothSpellingsAreOneModel) {
  std::vector<ModelSpec> models = TinyModels();
  for (const ModelSpec& m : PublishedModels()) models.push_back(m);
  for (const ModelSpec& m : models) {
    for (const ModelSpec& form : {m, Flat(m)}) {
      const auto hub = ParseModelConfig(HubConfigJson(form));
      const auto written = ParseModelConfig(TransformersConfigJson(form));
      ASSERT_THAT(hub, IsOk()) << m.name;
      ASSERT_THAT(written, IsOk()) << m.name;
      EXPECT_TRUE(*hub == *written) << m.name;
      EXPECT_EQ(hub->multimodal, form.multimodal);
    }
    // Nested or flat, the text model is the same.
    auto nested = ParseModelConfig(HubConfigJson(m));
    nested->multimodal = false;
    EXPECT_TRUE(*nested == *ParseModelConfig(HubConfigJson(Flat(m)))) << m.name;
  }
}

TEST(ModelConfigTest, DifferentModelsDiffer) {
  std::vector<ModelConfig> configs;
  for (const char* name : {"Qwen3Tied", "Qwen3Untied", "Qwen2Tied", "Llama", "LlamaBiases", "Moe",
                           "MoeDenseLayer", "Next", "NextTwoBlocks", "GemmaPle", "GemmaMoe",
                           "GemmaMoeThreeGlobalKvHeads", "GemmaMoeMultimodal"}) {
    const auto config = ParseModelConfig(HubConfigJson(TinyModel(name)));
    ASSERT_THAT(config, IsOk());
    for (const ModelConfig& other : configs) EXPECT_FALSE(*config == other) << name;
    configs.push_back(*config);
  }
}

TEST(ModelConfigTest, ReadsEachFamilysNumbers) {
  const auto dense = ParseModelConfig(HubConfigJson(TinyModel("Qwen3Tied")));
  ASSERT_THAT(dense, IsOk());
  EXPECT_EQ(dense->model_type, "qwen3");
  EXPECT_EQ(dense->dtype, DType::kBF16);
  EXPECT_EQ(dense->hidden_size, 8);
  EXPECT_EQ(dense->head_dim, 3);
  EXPECT_TRUE(dense->tie_word_embeddings);

  const auto moe = ParseModelConfig(HubConfigJson(TinyModel("MoeDenseLayer")));
  ASSERT_THAT(moe, IsOk());
  EXPECT_EQ(moe->num_experts, 3);
  EXPECT_EQ(moe->moe_intermediate_size, 5);
  EXPECT_THAT(moe->sparse, ElementsAre(false, true));

  const auto next = ParseModelConfig(TransformersConfigJson(TinyModel("Next")));
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(next->full_attention, ElementsAre(false, false, false, true));
  EXPECT_EQ(next->shared_expert_intermediate_size, 7);
  EXPECT_EQ(next->linear_num_key_heads, 2);
  EXPECT_EQ(next->linear_value_head_dim, 2);

  const auto gemma = ParseModelConfig(TransformersConfigJson(TinyModel("GemmaMoeMultimodal")));
  ASSERT_THAT(gemma, IsOk());
  EXPECT_EQ(gemma->model_type, "gemma4_text");
  EXPECT_TRUE(gemma->multimodal);
  EXPECT_EQ(gemma->head_dim, 4);
  EXPECT_EQ(gemma->global_head_dim, 6);
  EXPECT_EQ(gemma->num_global_key_value_heads, 1);
  EXPECT_THAT(gemma->full_attention, ElementsAre(false, false, true, false, false, true));
}

TEST(ModelConfigTest, WhatIsNotStatedFollowsTheModelsDefaults) {
  const std::string plain =
      R"({"model_type": "qwen2", "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 7, "vocab_size": 9)";
  const auto config = ParseModelConfig(plain + "}");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->head_dim, 3);
  EXPECT_EQ(config->num_key_value_heads, 4);
  EXPECT_EQ(config->dtype, DType::kBF16);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_THAT(ParseModelConfig(plain + R"(, "dtype": "float32"})")->dtype, DType::kF32);
  EXPECT_FALSE(config->scaled_rope);
  EXPECT_TRUE(
      ParseModelConfig(plain + R"(, "rope_scaling": {"rope_type": "llama3"}})")->scaled_rope);
  EXPECT_THAT(ParseModelConfig(plain + R"(, "rope_scaling": null})"), IsOk());
}

// As transformers 5.19's classes do with a config.json that lacks these fields.
TEST(ModelConfigTest, DefaultsAreThoseOfTheModelsClass) {
  const std::string sizes =
      R"(", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 7, "vocab_size": 9,
          "layer_types": ["full_attention", "full_attention"])";
  const auto parse = [&](const std::string& type, const std::string& more) {
    return ParseModelConfig(absl::StrCat(R"({"model_type": ")", type, sizes, more, "}")).value();
  };
  EXPECT_EQ(parse("llama", "").head_dim, 12);
  EXPECT_EQ(parse("qwen2", "").head_dim, 12);
  EXPECT_EQ(parse("qwen3_moe", "").head_dim, 12);
  EXPECT_EQ(parse("qwen3", "").head_dim, 128);
  EXPECT_EQ(parse("qwen3_next", "").head_dim, 256);

  const ModelConfig gemma = parse("gemma4_text", "");
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_EQ(gemma.global_head_dim, 512);
  EXPECT_EQ(gemma.hidden_size_per_layer_input, 256);
  EXPECT_EQ(gemma.vocab_size_per_layer_input, 262'144);
  // The hub's spelling, which says nothing of the full-attention layers.
  EXPECT_EQ(parse("gemma4_text", R"(, "head_dim": 16)").global_head_dim, 512);
  // The newer one, which says that no layer differs.
  EXPECT_EQ(parse("gemma4_text", R"(, "head_dim": 16, "per_layer_config": {})").global_head_dim,
            16);
}

TEST(ModelConfigTest, GemmaTiesAndEndsWithFullAttention) {
  const ModelSpec spec = TinyModel("GemmaMoe");
  json config = json::parse(HubConfigJson(spec));
  config.erase("tie_word_embeddings");
  config["layer_types"][5] = "sliding_attention";
  const auto parsed = ParseModelConfig(config.dump());
  ASSERT_THAT(parsed, IsOk());
  EXPECT_TRUE(parsed->tie_word_embeddings);
  EXPECT_TRUE(parsed->full_attention[5]);
}

TEST(ModelConfigTest, OlderNamesOfLayerTypes) {
  EXPECT_THAT(ParseWith("Next", "layer_types", R"(["mamba", "mamba", "mamba", "attention"])"),
              IsOk());
}

struct BadField {
  const char* model;
  const char* field;
  const char* value;  // JSON
  const char* message;
};

TEST(ModelConfigTest, EveryBadFieldIsNamed) {
  const BadField fields[] = {
      {"Llama", "model_type", "null", "no 'model_type'"},
      {"Llama", "model_type", "7", "'model_type' is not a string"},
      {"Llama", "hidden_size", "null", "no 'hidden_size'"},
      {"Llama", "num_hidden_layers", "null", "no 'num_hidden_layers'"},
      {"Llama", "num_attention_heads", "null", "no 'num_attention_heads'"},
      {"Llama", "intermediate_size", "null", "no 'intermediate_size'"},
      {"Llama", "vocab_size", "null", "no 'vocab_size'"},
      {"Llama", "hidden_size", "0", "'hidden_size' is 0"},
      {"Llama", "num_attention_heads", "0", "'num_attention_heads' is 0"},
      {"Llama", "num_key_value_heads", "-1", "'num_key_value_heads' is -1"},
      {"Llama", "head_dim", "2.5", "'head_dim' is 2.5"},
      {"Llama", "intermediate_size", "\"10\"", "'intermediate_size' is \"10\""},
      {"Llama", "vocab_size", "9000000000", "'vocab_size' is 9000000000"},
      {"Llama", "vocab_size", "18446744073709551615", "'vocab_size' is 18446744073709551615"},
      {"Llama", "num_hidden_layers", "1000000", "'num_hidden_layers' is 1000000"},
      {"Llama", "tie_word_embeddings", "1", "'tie_word_embeddings' is not true or false"},
      {"Llama", "attention_bias", "\"no\"", "'attention_bias' is not true or false"},
      {"Llama", "mlp_bias", "0", "'mlp_bias' is not true or false"},
      {"Llama", "torch_dtype", "\"bfloat17\"", "'dtype'"},
      {"Llama", "torch_dtype", "16", "'torch_dtype' is not a string"},
      {"Qwen3Tied", "layer_types", "\"full_attention\"", "'layer_types' is not a list"},
      {"Qwen3Tied", "layer_types", R"(["full_attention"])", "num_hidden_layers = 2"},
      {"Qwen3Tied", "layer_types", R"(["full_attention", "conv"])", "\"conv\""},
      {"Qwen3Tied", "layer_types", R"(["full_attention", 3])", "unknown entry 3"},
      {"Moe", "num_experts", "-2", "'num_experts' is -2"},
      {"Moe", "moe_intermediate_size", "\"x\"", "'moe_intermediate_size' is \"x\""},
      {"Moe", "decoder_sparse_step", "0", "'decoder_sparse_step' is 0"},
      {"Moe", "mlp_only_layers", "1", "'mlp_only_layers' is not a list"},
      {"Moe", "mlp_only_layers", "[2]", "'mlp_only_layers' names layer 2 of 2"},
      {"Moe", "mlp_only_layers", "[\"1\"]", "'mlp_only_layers' is \"1\""},
      {"Next", "full_attention_interval", "0", "'full_attention_interval' is 0"},
      {"Next", "linear_num_key_heads", "-1", "'linear_num_key_heads' is -1"},
      {"Next", "linear_conv_kernel_dim", "1.5", "'linear_conv_kernel_dim' is 1.5"},
      {"Next", "shared_expert_intermediate_size", "true",
       "'shared_expert_intermediate_size' is true"},
      {"GemmaPle", "layer_types", "null", "no 'layer_types'"},
      {"GemmaPle", "num_kv_shared_layers", "7", "'num_kv_shared_layers' is more than"},
      {"GemmaPle", "use_double_wide_mlp", "2", "'use_double_wide_mlp' is not true or false"},
      {"GemmaPle", "hidden_size_per_layer_input", "-1", "'hidden_size_per_layer_input' is -1"},
      {"GemmaPle", "global_head_dim", "\"6\"", "'global_head_dim' is \"6\""},
      {"GemmaPle", "per_layer_config", "[1, 2]", "'per_layer_config' is not an object"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}})", "has 1 entries for 2"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "x": {}})", "unknown entry 'x'"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "9": {}})", "unknown entry '9'"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "5": 6})", "unknown entry '5'"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "4": {"head_dim": 6}})",
       "changes layer 4"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "5": {"head_dim": 7}})",
       "gives layer 5 another form"},
      {"GemmaPle", "per_layer_config", R"({"2": {"head_dim": 6}, "5": {"head_dim": "6"}})",
       "'head_dim' is \"6\""},
  };
  for (const BadField& bad : fields) {
    EXPECT_THAT(ParseWith(bad.model, bad.field, bad.value),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)))
        << bad.model << " " << bad.field << " " << bad.value;
  }
}

TEST(ModelConfigTest, TextThatIsNoConfigIsRefused) {
  for (const char* text : {"", "{", "[]", "7", "{\"a\": 1, \"a\": 2}"}) {
    EXPECT_THAT(ParseModelConfig(text).status(), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_THAT(
      ParseModelConfig(R"({"model_type": "gemma4", "text_config": []})").status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'text_config' is not an object")));
}

TEST(ModelConfigTest, ReadingAFileNamesItInErrors) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/config.json");
  EXPECT_THAT(ReadModelConfig(path + ".none").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + ".none")));
  std::ofstream(path) << HubConfigJson(TinyModel("Moe"));
  const auto read = ReadModelConfig(path);
  ASSERT_THAT(read, IsOk());
  EXPECT_TRUE(*read == *ParseModelConfig(HubConfigJson(TinyModel("Moe"))));
  std::ofstream(path) << "{}";
  EXPECT_THAT(ReadModelConfig(path).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("'model_type'"))));
}

}  // namespace
}  // namespace weight_sync::refit
