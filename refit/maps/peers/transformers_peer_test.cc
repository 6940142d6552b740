// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The layout "hf-fused" against the live state_dict() of transformers' models, for every family;
// and config.json as the hub spells it against what transformers makes of it. Needs
// `tools/peers/setup torch`.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/maps/model_config.h"
#include "refit/maps/peers/peer_tree.h"
#include "refit/maps/weight_map.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::Exchange;
using testing::ExchangeSlices;
using ::testing::IsEmpty;
using testing::PassedThrough;
using testing::PeerCheckpoint;
using testing::PeerRun;
using testing::PeerTree;
using ::testing::UnorderedElementsAre;

constexpr char kProgram[] = "refit/maps/peers/transformers_peer.py";

// How many tensors the live model has. Where it is tied, its head is one of them.
const std::map<std::string, size_t>& LiveTensors() {
  static const auto* const families = new std::map<std::string, size_t>{
      {"llama", 21},
      {"llama_tied", 21},
      {"qwen2", 27},
      {"qwen2_tied", 27},
      {"qwen3", 25},
      {"qwen3_tied", 25},
      {"qwen3_moe", 25},
      {"qwen3_next", 66},
      {"qwen3_next_two_blocks", 129},
      {"gemma4", 99},
      {"gemma4_moe", 133},
      {"gemma4_multimodal", 99},
      {"gemma4_moe_multimodal", 133},
  };
  return *families;
}

class TransformersPeerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> names;
    for (const auto& [name, tensors] : LiveTensors()) names.push_back(name);
    run_ = new absl::StatusOr<PeerRun>(testing::RunPeer("torch", {kProgram, "state"}, names));
  }
  static void TearDownTestSuite() { delete run_; }

  void SetUp() override {
    if (absl::IsNotFound(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_THAT(*run_, IsOk());
  }

  static PeerTree Live(const std::string& family) {
    return testing::ReadTree((*run_)->Tree(family)).value();
  }
  static PeerCheckpoint Published(const std::string& family) {
    return PeerCheckpoint::Open((*run_)->Published(family)).value();
  }

  static absl::StatusOr<PeerRun>* run_;
};

absl::StatusOr<PeerRun>* TransformersPeerTest::run_ = nullptr;

TEST_F(TransformersPeerTest, TheLiveStateOfEveryFamilyIsOurs) {
  for (const auto& [family, tensors] : LiveTensors()) {
    SCOPED_TRACE(family);
    const PeerCheckpoint published = Published(family);
    const auto map = published.Build({"hf-fused"});
    ASSERT_THAT(map, IsOk());
    const PeerTree live = Live(family);
    EXPECT_EQ(live.size(), tensors);
    EXPECT_THAT(published.LoadDifferences(*map, live), IsEmpty());
    EXPECT_THAT(published.RefitDifferences(*map, live), IsEmpty());
    EXPECT_EQ(PassedThrough(*map).size(), family == "gemma4_multimodal" ? 9 : 0);
  }
}

// Three layers share the keys and values of earlier ones: the model drops what the checkpoint holds
// for them.
TEST_F(TransformersPeerTest, OnlyWhatTheModelDropsPassesThrough) {
  std::vector<std::string> dropped;
  for (int layer = 3; layer < 6; ++layer) {
    for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
      dropped.push_back(absl::StrCat("model.language_model.layers.", layer, ".self_attn.", name));
    }
  }
  EXPECT_THAT(PassedThrough(*Published("gemma4_multimodal").Build({"hf-fused"})),
              ::testing::UnorderedElementsAreArray(dropped));
}

TEST_F(TransformersPeerTest, WithoutAManifestTheFormIsThatOfSavePretrained) {
  for (const auto& [family, tensors] : LiveTensors()) {
    if (family == "gemma4_multimodal") continue;  // save_pretrained was given more to write
    SCOPED_TRACE(family);
    const PeerCheckpoint published = Published(family);
    const auto map = published.BuildWithoutManifest({"hf-fused"});
    ASSERT_THAT(map, IsOk());
    EXPECT_THAT(published.LoadDifferences(*map, Live(family)), IsEmpty());
    EXPECT_THAT(published.RefitDifferences(*map, Live(family)), IsEmpty());
  }
}

// Negative controls: the comparisons see two tensors that are exchanged, and parts of one.

TEST_F(TransformersPeerTest, TwoExchangedLayersAreSeen) {
  const PeerCheckpoint published = Published("qwen3");
  const WeightMap map = published.Build({"hf-fused"}).value();
  PeerTree live = Live("qwen3");
  const std::string first = "model.layers.0.self_attn.q_proj.weight";
  const std::string second = "model.layers.1.self_attn.q_proj.weight";
  Exchange(live, first, second);
  const auto both = ElementsAre(first + " has other bytes", second + " has other bytes");
  EXPECT_THAT(published.LoadDifferences(map, live), both);
  EXPECT_THAT(published.RefitDifferences(map, live), both);
}

TEST_F(TransformersPeerTest, TwoExchangedExpertsAreSeen) {
  const PeerCheckpoint published = Published("qwen3_moe");
  const WeightMap map = published.Build({"hf-fused"}).value();
  PeerTree live = Live("qwen3_moe");
  ExchangeSlices(live.at("model.layers.1.mlp.experts.down_proj"), 1, 3);
  EXPECT_THAT(published.LoadDifferences(map, live),
              ElementsAre("model.layers.1.mlp.experts.down_proj has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, live),
              ElementsAre("model.layers.1.mlp.experts.1.down_proj.weight has other bytes",
                          "model.layers.1.mlp.experts.3.down_proj.weight has other bytes"));
}

TEST_F(TransformersPeerTest, ATiedHeadThatDiffersIsSeen) {
  const PeerCheckpoint published = Published("gemma4");
  const WeightMap map = published.Build({"hf-fused"}).value();
  PeerTree live = Live("gemma4");
  ExchangeSlices(live.at("lm_head.weight"), 0, 1);
  EXPECT_THAT(published.RefitDifferences(map, live),
              ElementsAre(::testing::HasSubstr("'lm_head.weight' differs from")));
}

TEST_F(TransformersPeerTest, AMissingAndAnAddedTensorAreSeen) {
  const PeerCheckpoint published = Published("llama");
  const WeightMap map = published.Build({"hf-fused"}).value();
  PeerTree live = Live("llama");
  auto norm = live.extract("model.norm.weight");
  norm.key() = "model.norm.scale";
  live.insert(std::move(norm));
  EXPECT_THAT(
      published.LoadDifferences(map, live),
      UnorderedElementsAre("model.norm.scale is theirs only", "model.norm.weight is ours only"));
  EXPECT_THAT(published.RefitDifferences(map, live),
              ElementsAre(::testing::AllOf(::testing::HasSubstr("model.norm.scale"),
                                           ::testing::HasSubstr("model.norm.weight"))));
}

// The hub's config.json, and one that leaves fields to their defaults, mean what transformers takes
// them for.
TEST_F(TransformersPeerTest, ConfigsAreReadAsTransformersReadsThem) {
  std::map<std::string, json> configs;
  for (const testing::ModelSpec& model : testing::TinyModels()) {
    json config = json::parse(testing::HubConfigJson(model));
    configs[model.name] = config;
    json& text = config.contains("text_config") ? config["text_config"] : config;
    for (const char* field : {"head_dim", "global_head_dim", "hidden_size_per_layer_input",
                              "vocab_size_per_layer_input", "tie_word_embeddings"}) {
      text.erase(field);
    }
    config.erase("tie_word_embeddings");
    configs[model.name + "Defaults"] = config;
  }
  const std::string in = ::testing::TempDir() + "/configs";
  std::vector<std::string> directories;
  for (const auto& [name, config] : configs) {
    directories.push_back(absl::StrCat(in, "/", name));
    std::filesystem::create_directories(directories.back());
    std::ofstream(directories.back() + "/config.json") << config.dump();
  }
  const auto out = testing::RunPeerOn("torch", {kProgram, "config"}, directories);
  ASSERT_THAT(out, IsOk());
  for (const auto& [name, config] : configs) {
    const auto ours = ReadModelConfig(absl::StrCat(in, "/", name, "/config.json"));
    const auto theirs = ReadModelConfig(absl::StrCat(*out, "/", name, "/config.json"));
    ASSERT_THAT(ours, IsOk()) << name;
    ASSERT_THAT(theirs, IsOk()) << name;
    EXPECT_TRUE(*ours == *theirs) << name << ": " << config.dump();
  }
}

}  // namespace
}  // namespace weight_sync::refit
