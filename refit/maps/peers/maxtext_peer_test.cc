// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The layout "maxtext", scanned and not, against MaxText's own conversion. Needs
// `tools/peers/setup torch tunix`.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/family.h"
#include "refit/maps/peers/peer_tree.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::testing::ElementsAre;
using testing::Exchange;
using testing::ExchangeSlices;
using ::testing::IsEmpty;
using testing::PassedThrough;
using testing::PeerCheckpoint;
using testing::PeerRun;
using testing::PeerTree;

LayoutOptions Unscanned() { return {"maxtext"}; }
LayoutOptions Scanned(int axis, int64_t period) {
  return {"maxtext", /*scanned=*/true, axis, period};
}

struct Case {
  std::string family;
  std::string form;  // as maxtext_peer.py names it
  LayoutOptions layout;
  size_t arrays;  // that MaxText's model has
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"qwen3_moe", "unscanned", Unscanned(), 27},
      {"qwen3_moe", "scanned", Scanned(1, 1), 15},
      {"qwen3_next", "unscanned", Unscanned(), 70},
      {"qwen3_next", "scanned", Scanned(1, 4), 36},
      {"qwen3_next_two_blocks", "unscanned", Unscanned(), 137},
      {"qwen3_next_two_blocks", "scanned", Scanned(1, 4), 36},
  };
  for (const bool tied : {false, true}) {
    for (const char* family : {"qwen2", "qwen3"}) {
      const std::string name = absl::StrCat(family, tied ? "_tied" : "");
      const size_t top = tied ? 2 : 3, layer = name[4] == '2' ? 12 : 11;
      cases.push_back({name, "unscanned", Unscanned(), top + 2 * layer});
      cases.push_back({name, "scanned", Scanned(1, 1), top + layer});
      cases.push_back({name, "scanned-at-0", Scanned(0, 1), top + layer});
      if (tied) cases.push_back({name, "padded", Unscanned(), top + 2 * layer});
    }
  }
  return cases;
}

class MaxTextPeerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = new absl::StatusOr<PeerRun>(
        testing::RunPeer("tunix", {"refit/maps/peers/maxtext_peer.py"},
                         {"qwen2", "qwen2_tied", "qwen3", "qwen3_tied", "qwen3_moe", "qwen3_next",
                          "qwen3_next_two_blocks"}));
  }
  static void TearDownTestSuite() { delete run_; }

  void SetUp() override {
    if (absl::IsNotFound(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_THAT(*run_, IsOk());
  }

  static PeerTree Theirs(const std::string& family, const std::string& form) {
    return testing::ReadTree((*run_)->Tree(absl::StrCat(family, ".", form))).value();
  }
  static PeerCheckpoint Published(const std::string& family) {
    return PeerCheckpoint::Open((*run_)->Published(family)).value();
  }

  static absl::StatusOr<PeerRun>* run_;
};

absl::StatusOr<PeerRun>* MaxTextPeerTest::run_ = nullptr;

TEST_F(MaxTextPeerTest, ItsTreeOfEveryFamilyIsOurs) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(absl::StrCat(c.family, ", ", c.form));
    const PeerCheckpoint published = Published(c.family);
    const auto map = published.Build(c.layout);
    ASSERT_THAT(map, IsOk());
    const PeerTree theirs = Theirs(c.family, c.form);
    EXPECT_EQ(theirs.size(), c.arrays);
    EXPECT_THAT(published.LoadDifferences(*map, theirs), IsEmpty());
    EXPECT_THAT(published.RefitDifferences(*map, theirs), IsEmpty());
    EXPECT_THAT(PassedThrough(*map), IsEmpty());
  }
}

TEST_F(MaxTextPeerTest, ThePaddedVocabularyIsPadded) {
  EXPECT_EQ(Theirs("qwen3_tied", "padded").at("params-token_embedder-embedding").shape,
            (Shape{640, 64}));
  EXPECT_EQ(Published("qwen3_tied").config().vocab_size, 512);
}

// Negative controls: the comparisons see what is exchanged.

TEST_F(MaxTextPeerTest, TwoExchangedLayersAreSeen) {
  const PeerCheckpoint published = Published("qwen3");
  const WeightMap map = published.Build(Scanned(0, 1)).value();
  PeerTree theirs = Theirs("qwen3", "scanned-at-0");
  ExchangeSlices(theirs.at("params-decoder-layers-mlp-wo-kernel"), 0, 1);
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("params-decoder-layers-mlp-wo-kernel has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre("model.layers.0.mlp.down_proj.weight has other bytes",
                          "model.layers.1.mlp.down_proj.weight has other bytes"));
}

TEST_F(MaxTextPeerTest, TwoExchangedProjectionsAreSeen) {
  const PeerCheckpoint published = Published("qwen2");
  const WeightMap map = published.Build(Unscanned()).value();
  PeerTree theirs = Theirs("qwen2", "unscanned");
  Exchange(theirs, "params-decoder-layers_1-self_attention-key-kernel",
           "params-decoder-layers_1-self_attention-value-kernel");
  EXPECT_THAT(published.LoadDifferences(map, theirs),
              ElementsAre("params-decoder-layers_1-self_attention-key-kernel has other bytes",
                          "params-decoder-layers_1-self_attention-value-kernel has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre("model.layers.1.self_attn.k_proj.weight has other bytes",
                          "model.layers.1.self_attn.v_proj.weight has other bytes"));
}

// In both blocks, since the axis of experts comes first.
TEST_F(MaxTextPeerTest, TwoExchangedExpertsAreSeen) {
  const PeerCheckpoint published = Published("qwen3_next_two_blocks");
  const WeightMap map = published.Build(Scanned(1, 4)).value();
  PeerTree theirs = Theirs("qwen3_next_two_blocks", "scanned");
  const std::string name = "params-decoder-layers-global_layer-mlp-routed_experts-wi_0";
  ExchangeSlices(theirs.at(name), 1, 2);
  EXPECT_THAT(published.LoadDifferences(map, theirs), ElementsAre(name + " has other bytes"));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre("model.layers.3.mlp.experts.1.gate_proj.weight has other bytes",
                          "model.layers.3.mlp.experts.2.gate_proj.weight has other bytes",
                          "model.layers.7.mlp.experts.1.gate_proj.weight has other bytes",
                          "model.layers.7.mlp.experts.2.gate_proj.weight has other bytes"));
}

TEST_F(MaxTextPeerTest, AnotherAxisOfLayersIsSeen) {
  const PeerCheckpoint published = Published("qwen3");
  const PeerTree theirs = Theirs("qwen3", "scanned");
  const WeightMap map = published.Build(Scanned(0, 1)).value();
  EXPECT_THAT(published.LoadDifferences(map, theirs), ::testing::SizeIs(11));
  EXPECT_THAT(published.RefitDifferences(map, theirs),
              ElementsAre(::testing::HasSubstr("11 of another shape")));
}

}  // namespace
}  // namespace weight_sync::refit
