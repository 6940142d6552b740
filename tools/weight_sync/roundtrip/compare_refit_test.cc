// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/roundtrip/compare_refit.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/roundtrip/simulated_ranks.h"

namespace weight_sync::roundtrip {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using refit::testing::CheckedModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A tiny Qwen3-MoE with its tree of tunix, whose bytes a test may change.
class CompareRefitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const refit::testing::ModelSpec spec = refit::testing::TinyModel("Moe");
    auto model = CheckedModel::Write(spec, refit::testing::PlainCase(spec, "tunix"),
                                     refit::testing::Storage::kBF16);
    ASSERT_THAT(model, IsOk());
    model_.emplace(*std::move(model));
    auto map = model_->Build(refit::testing::FamilyOf(spec));
    ASSERT_THAT(map, IsOk());
    map_.emplace(*std::move(map));
    std::vector<refit::MutableTrainerArray> loaded;
    for (const refit::WeightMap::TrainerTensor& tensor : map_->trainer()) {
      bytes_.emplace_back(static_cast<size_t>(2 * tensor.shape.num_elements()));
      loaded.push_back({tensor.name, refit::MutableTensorView::Contiguous(
                                         bytes_.back().data(), refit::DType::kBF16, tensor.shape)});
      arrays_.push_back({tensor.name, loaded.back().view});
    }
    ASSERT_THAT(refit::LoadCheckpoint(*map_, model_->checkpoint(), loaded), IsOk());
  }

  // Flips a bit of the trainer's tensor.
  void Flip(const std::string& name, size_t element) {
    bytes_[static_cast<size_t>(*map_->FindTrainer(name))][2 * element] ^= std::byte{1};
  }

  std::optional<CheckedModel> model_;
  std::optional<refit::WeightMap> map_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<refit::TrainerArray> arrays_;
};

TEST_F(CompareRefitTest, WhatWasLoadedComesBack) {
  int64_t compared = 0;
  EXPECT_THAT(
      CompareRefit(*map_, arrays_, model_->checkpoint(), [&](int64_t bytes) { compared += bytes; }),
      IsOkAndHolds(IsEmpty()));
  EXPECT_EQ(compared, model_->checkpoint().total_bytes());
}

TEST_F(CompareRefitTest, OneBitNamesItsTensor) {
  Flip("layers.1.mlp.up_proj", 2 * 8 * 5 + 3);  // of the third expert
  Flip("final_norm.w", 7);
  EXPECT_THAT(CompareRefit(*map_, arrays_, model_->checkpoint(), {}),
              IsOkAndHolds(
                  ElementsAre("model.layers.1.mlp.experts.2.up_proj.weight", "model.norm.weight")));
}

TEST_F(CompareRefitTest, EveryTensorOfTheCheckpointIsCompared) {
  for (std::vector<std::byte>& bytes : bytes_) {
    for (std::byte& byte : bytes) byte ^= std::byte{1};
  }
  const auto differ = CompareRefit(*map_, arrays_, model_->checkpoint(), {});
  ASSERT_THAT(differ, IsOk());
  EXPECT_EQ(differ->size(), model_->checkpoint().tensors().size());
}

TEST_F(CompareRefitTest, WhatRanksHoldComesBackAndOneBitNamesItsTensor) {
  for (const char* text : {"dp=1", "dp=3", "dp=2,tp=2", "dp=3,tp=2", "replica=2,dp=2,tp=2"}) {
    const auto mesh = ParseMesh(text);
    ASSERT_THAT(mesh, IsOk());
    int64_t compared = 0;
    EXPECT_THAT(CompareRefit(
                    *map_, arrays_, model_->checkpoint(), [&](int64_t bytes) { compared += bytes; },
                    &*mesh),
                IsOkAndHolds(IsEmpty()))
        << text;
    EXPECT_EQ(compared, model_->checkpoint().total_bytes());
    Flip("final_norm.w", 7);
    EXPECT_THAT(CompareRefit(*map_, arrays_, model_->checkpoint(), {}, &*mesh),
                IsOkAndHolds(ElementsAre("model.norm.weight")));
    Flip("final_norm.w", 7);
  }
}

TEST_F(CompareRefitTest, ArraysThatRanksCannotHoldAreRefused) {
  const auto mesh = ParseMesh("dp=2");
  ASSERT_THAT(mesh, IsOk());
  arrays_.pop_back();
  EXPECT_THAT(CompareRefit(*map_, arrays_, model_->checkpoint(), {}, &*mesh),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("missing")));
}

TEST(ParseMeshTest, RefusesWhatIsNoMesh) {
  for (const char* text :
       {"", "dp", "dp=", "dp=x", "dp=0", "dp=2,", "=2", "dp=2,dp=2", "dp=65", "dp=8,tp=9"}) {
    EXPECT_THAT(ParseMesh(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST_F(CompareRefitTest, AnotherCheckpointIsRefused) {
  const auto other = refit::Checkpoint::OfTensors({});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(CompareRefit(*map_, arrays_, *other, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'model.embed_tokens.weight' is not in the checkpoint")));
}

}  // namespace
}  // namespace weight_sync::roundtrip
