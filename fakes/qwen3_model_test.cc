// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/qwen3_model.h"

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;

// The published model has 311 tensors of 751,632,384 elements, its tied lm_head included.
TEST(Qwen3ModelTest, DefaultsAreThePublishedModelWithoutItsTiedHead) {
  auto info = refit::RefitInfo::Create(Qwen3Tensors({}));
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->size(), 311 - 1);
  EXPECT_EQ(info->total_bytes(), 2 * (751'632'384 - int64_t{151'936} * 1024));
  EXPECT_FALSE(info->Find("lm_head.weight").has_value());
}

TEST(Qwen3ModelTest, NineLayersAndAVocabularyOf8192Are300Megabytes) {
  Qwen3Config config;
  config.layers = 9;
  config.vocabulary = 8192;
  auto info = refit::RefitInfo::Create(Qwen3Tensors(config));
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->size(), 2 + 9 * 11);
  EXPECT_EQ(info->total_bytes(), 299'936'256);
}

TEST(Qwen3ModelTest, ShapesFollowTheConfig) {
  Qwen3Config config;
  config.layers = 2;
  auto info = refit::RefitInfo::Create(Qwen3Tensors(config));
  ASSERT_THAT(info, IsOk());
  const auto shape = [&](const char* name) { return (*info)[*info->Find(name)].shape; };
  EXPECT_EQ(shape("model.embed_tokens.weight"), (refit::Shape{151936, 1024}));
  EXPECT_EQ(shape("model.layers.1.self_attn.q_proj.weight"), (refit::Shape{2048, 1024}));
  EXPECT_EQ(shape("model.layers.1.self_attn.v_proj.weight"), (refit::Shape{1024, 1024}));
  EXPECT_EQ(shape("model.layers.1.self_attn.o_proj.weight"), (refit::Shape{1024, 2048}));
  EXPECT_EQ(shape("model.layers.0.self_attn.q_norm.weight"), (refit::Shape{128}));
  EXPECT_EQ(shape("model.layers.0.mlp.down_proj.weight"), (refit::Shape{1024, 3072}));
  EXPECT_EQ(info->tensors().front().name, "model.embed_tokens.weight");
  EXPECT_EQ(info->tensors().back().name, "model.norm.weight");
}

}  // namespace
}  // namespace weight_sync::fakes
