// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Every family in every layout, against trees that were written down by formula.

#include <set>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/maps/weight_map.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using testing::CheckedModel;
using testing::FamilyOf;
using testing::LayoutCase;
using testing::LayoutCases;
using testing::ModelSpec;
using testing::Storage;
using testing::TinyModels;

class FamilyProofTest : public ::testing::TestWithParam<ModelSpec> {};

TEST_P(FamilyProofTest, LoadsIntoTheTrainersTreeAndRefitsFromIt) {
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    SCOPED_TRACE(c.label);
    const auto checked = CheckedModel::Write(GetParam(), c, Storage::kBF16);
    ASSERT_THAT(checked, IsOk());
    const auto map = checked->Build(FamilyOf(GetParam()));
    ASSERT_THAT(map, IsOk());
    EXPECT_THAT(checked->CheckShapes(*map), IsOk());
    EXPECT_THAT(checked->CheckLoad(*map, Storage::kBF16), IsOk());
    // Buckets that end inside rows, heads and experts, and one that holds many tensors.
    for (const int64_t bytes : {64, 192, 4096}) {
      EXPECT_THAT(checked->CheckRefit(*map, Storage::kBF16, {bytes, 64}, false), IsOk()) << bytes;
    }
    EXPECT_THAT(checked->CheckRefit(*map, Storage::kBF16, {192, 8}, /*column_major=*/true), IsOk());
    // float32 masters, which round to what the checkpoint has.
    EXPECT_THAT(checked->CheckLoad(*map, Storage::kBF16AsF32), IsOk());
    EXPECT_THAT(checked->CheckRefit(*map, Storage::kBF16AsF32, {192, 64}, false), IsOk());
    EXPECT_THAT(checked->CheckRefit(*map, Storage::kBF16AsMaster, {192, 64}, false), IsOk());
    EXPECT_THAT(checked->CheckRefit(*map, Storage::kBF16AsMaster, {4096, 64}, true), IsOk());
  }
}

TEST_P(FamilyProofTest, Float32Checkpoint) {
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    SCOPED_TRACE(c.label);
    const auto checked = CheckedModel::Write(GetParam(), c, Storage::kF32);
    ASSERT_THAT(checked, IsOk());
    const auto map = checked->Build(FamilyOf(GetParam()));
    ASSERT_THAT(map, IsOk());
    EXPECT_THAT(checked->CheckShapes(*map), IsOk());
    EXPECT_THAT(checked->CheckLoad(*map, Storage::kF32), IsOk());
    EXPECT_THAT(checked->CheckRefit(*map, Storage::kF32, {192, 64}, false), IsOk());
  }
}

// Engines fuse gate and up, and q, k and v: a stream that keeps them together lets them do so
// without holding tensors back.
TEST_P(FamilyProofTest, WithoutAManifestLayersAscendAndFusedTensorsAreNeighbours) {
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    if (c.manifest) continue;
    SCOPED_TRACE(c.label);
    const auto config = ParseModelConfig(testing::HubConfigJson(GetParam()));
    ASSERT_THAT(config, IsOk());
    const auto map = WeightMap::Build(FamilyOf(GetParam()), *config, c.layout, {c.target, nullptr});
    ASSERT_THAT(map, IsOk());
    int64_t layer = 0;
    for (int t = 1; t < map->hf().size(); ++t) {
      const std::string& name = map->hf()[t].name;
      const std::string& before = map->hf()[t - 1].name;
      for (int64_t i = 0; i < GetParam().layers; ++i) {
        if (!absl::StrContains(name, absl::StrCat(".layers.", i, "."))) continue;
        EXPECT_GE(i, layer) << name;
        layer = i;
      }
      const auto follows = [&](const std::string& end, const std::string& other) {
        if (!absl::EndsWith(name, end)) return;
        EXPECT_EQ(before, name.substr(0, name.size() - end.size()) + other);
      };
      follows("up_proj.weight", "gate_proj.weight");
      follows("k_proj.weight", "q_proj.weight");
      follows("v_proj.weight", "k_proj.weight");
    }
  }
}

TEST(FamilyProofCoverageTest, ProvesEveryLayoutOfEveryFamily) {
  std::set<std::string> proved;
  for (const ModelSpec& model : TinyModels()) {
    const Family& family = FamilyOf(model);
    for (const LayoutCase& c : LayoutCases(model)) {
      proved.insert(
          absl::StrCat(family.name, " ", c.layout.name, c.layout.scanned ? " scanned" : ""));
    }
  }
  EXPECT_EQ(
      proved,
      (std::set<std::string>{
          "dense hf", "dense hf-fused", "dense tunix", "dense maxtext", "dense maxtext scanned",
          "qwen3_moe hf", "qwen3_moe hf-fused", "qwen3_moe tunix", "qwen3_moe maxtext",
          "qwen3_moe maxtext scanned", "qwen3_next hf", "qwen3_next hf-fused", "qwen3_next maxtext",
          "qwen3_next maxtext scanned", "gemma4 hf", "gemma4 hf-fused", "gemma4 tunix"}));
}

INSTANTIATE_TEST_SUITE_P(TinyModels, FamilyProofTest, ::testing::ValuesIn(TinyModels()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace weight_sync::refit
