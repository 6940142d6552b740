// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The layout "tunix" against tunix itself, which loads the checkpoints by its own loader and saves
// its tree under its own paths. Needs `tools/peers/setup torch tunix`.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/maps/peers/peer_tree.h"
#include "refit/maps/weight_map.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Exchange;
using testing::ExchangeSlices;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PassedThrough;
using testing::PeerCheckpoint;
using testing::PeerRun;
using testing::PeerTree;

constexpr char kProgram[] = "refit/maps/peers/tunix_peer.py";

// How many arrays tunix's model has. It knows Gemma 4's names only as the multimodal class has them.
const std::map<std::string, size_t>& Arrays() {
  static const auto* const families = new std::map<std::string, size_t>{
      {"llama", 21},
      {"llama_tied", 20},
      {"qwen2", 27},
      {"qwen2_tied", 26},
      {"qwen3", 25},
      {"qwen3_tied", 24},
      {"qwen3_moe", 27},
      {"gemma4_multimodal", 101},
      {"gemma4_moe_multimodal", 128},
  };
  return *families;
}

class TunixPeerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> names;
    for (const auto& [name, arrays] : Arrays()) names.push_back(name);
    run_ = new absl::StatusOr<PeerRun>(testing::RunPeer("tunix", {kProgram}, names));
  }
  static void TearDownTestSuite() { delete run_; }

  void SetUp() override {
    if (absl::IsNotFound(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_THAT(*run_, IsOk());
  }

  static PeerTree Theirs(const std::string& family) {
    return testing::ReadTree((*run_)->Tree(family)).value();
  }
  static PeerCheckpoint Published(const std::string& family) {
    return PeerCheckpoint::Open((*run_)->Published(family)).value();
  }

  static absl::StatusOr<PeerRun>* run_;
};

absl::StatusOr<PeerRun>* TunixPeerTest::run_ = nullptr;

TEST_F(TunixPeerTest, ItsTreeOfEveryFamilyIsOurs) {
  for (const auto& [family, arrays] : Arrays()) {
    SCOPED_TRACE(family);
    const PeerCheckpoint published = Published(family);
    const auto map = published.Build({"tunix"});
    ASSERT_THAT(map, IsOk());
    const PeerTree theirs = Theirs(family);
    EXPECT_EQ(theirs.size(), arrays);
    EXPECT_THAT(published.LoadDifferences(*map, theirs), IsEmpty());
    EXPECT_THAT(published.RefitDifferences(*map, theirs), IsEmpty());
    EXPECT_THAT(PassedThrough(*map), IsEmpty());
  }
}

// Negative controls: the comparisons see what is exchanged.

TEST_F(TunixPeerTest, TwoExchangedLayersAreSeen) {
  const PeerCheckpoint published = Published("gemma4_multimodal");
  const WeightMap map = published.Build({"tunix"}).value();
  PeerTree theirs = Theirs("gemma4_multimodal");
  Exchange(theirs, "layers.0.pre_ffw_norm.scale", "layers.5.pre_ffw_norm.scale");
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("layers.0.pre_ffw_norm.scale has other bytes",
                          "layers.5.pre_ffw_norm.scale has other bytes"));
  const std::string hf = "model.language_model.layers.";
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre(hf + "0.pre_feedforward_layernorm.weight has other bytes",
                          hf + "5.pre_feedforward_layernorm.weight has other bytes"));
}

TEST_F(TunixPeerTest, ExchangedKeysAndValuesAreSeen) {
  const PeerCheckpoint published = Published("gemma4_multimodal");
  const WeightMap map = published.Build({"tunix"}).value();
  PeerTree theirs = Theirs("gemma4_multimodal");
  ExchangeSlices(theirs.at("layers.4.attn.kv_einsum.w"), 0, 1);
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("layers.4.attn.kv_einsum.w has other bytes"));
  const std::string hf = "model.language_model.layers.4.self_attn.";
  EXPECT_THAT(
      published.RefitDifferences(map, theirs),
      ElementsAre(hf + "k_proj.weight has other bytes", hf + "v_proj.weight has other bytes"));
}

TEST_F(TunixPeerTest, TwoExchangedProjectionsAreSeen) {
  const PeerCheckpoint published = Published("qwen2");
  const WeightMap map = published.Build({"tunix"}).value();
  PeerTree theirs = Theirs("qwen2");
  Exchange(theirs, "layers.1.mlp.gate_proj.kernel", "layers.1.mlp.up_proj.kernel");
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("layers.1.mlp.gate_proj.kernel has other bytes",
                          "layers.1.mlp.up_proj.kernel has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre("model.layers.1.mlp.gate_proj.weight has other bytes",
                          "model.layers.1.mlp.up_proj.weight has other bytes"));
}

TEST_F(TunixPeerTest, TwoExchangedExpertsAreSeen) {
  const PeerCheckpoint published = Published("qwen3_moe");
  const WeightMap map = published.Build({"tunix"}).value();
  PeerTree theirs = Theirs("qwen3_moe");
  ExchangeSlices(theirs.at("layers.0.mlp.up_proj"), 0, 3);
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("layers.0.mlp.up_proj has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre("model.layers.0.mlp.experts.0.up_proj.weight has other bytes",
                          "model.layers.0.mlp.experts.3.up_proj.weight has other bytes"));
}

// A negative control of tunix_peer.py: tunix loads both of these without a word. The names of a
// Gemma 4 that is not the multimodal class are all unknown to it.
TEST_F(TunixPeerTest, WhatItLeavesOutIsSeen) {
  const std::string directory = ::testing::TempDir() + "/one_name_more";
  std::filesystem::create_directory(directory);
  std::filesystem::copy_file((*run_)->Published("qwen3") + "/config.json",
                             directory + "/config.json");
  const Checkpoint published = Checkpoint::Open((*run_)->Published("qwen3")).value();
  std::vector<NamedTensor> tensors = published.tensors();
  tensors.push_back({"model.layers.1.self_attn.sinks", tensors.front().tensor});
  ASSERT_THAT(WriteSafetensors(directory + "/model.safetensors", tensors), IsOk());
  EXPECT_THAT(testing::RunPeerOn("tunix", {kProgram, "--mode", "original"},
                                 {directory, (*run_)->Published("gemma4")}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("one_name_more: 1 names were not used, among them "
                                       "model.layers.1.self_attn.sinks"),
                             HasSubstr("gemma4: 101 arrays have no values, among them "
                                       "embedder.input_embedding"))));
}

}  // namespace
}  // namespace weight_sync::refit
