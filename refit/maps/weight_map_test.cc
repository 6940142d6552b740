// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/weight_map.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/family.h"
#include "refit/maps/manifest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::Elements;
using testing::FamilyOf;
using ::testing::HasSubstr;
using testing::HfFused;
using testing::HfShapes;
using testing::HubConfigJson;
using testing::InfoOf;
using testing::ModelSpec;
using ::testing::Not;
using testing::TinyModel;
using testing::TransformersConfigJson;

LayoutOptions Scanned(int64_t period, int axis = 1) {
  LayoutOptions layout;
  layout.name = "maxtext";
  layout.scanned = true;
  layout.scan_axis = axis;
  layout.scan_period = period;
  return layout;
}

absl::StatusOr<WeightMap> Build(const ModelSpec& m, const LayoutOptions& layout,
                                const MapOptions& options = {}) {
  const auto config = ParseModelConfig(HubConfigJson(m));
  if (!config.ok()) return config.status();
  return WeightMap::Build(FamilyOf(m), *config, layout, options);
}

// As Build, with a manifest of these tensors.
absl::StatusOr<WeightMap> BuildFrom(const std::vector<Elements>& on_disk, const ModelSpec& m,
                                    const LayoutOptions& layout, const std::string& target = "") {
  const Manifest manifest(InfoOf(on_disk));
  return Build(m, layout, {target, &manifest});
}

TEST(WeightMapTest, BothSpellingsOfAConfigGiveOneMap) {
  for (const ModelSpec& m : testing::TinyModels()) {
    const Manifest manifest(InfoOf(HfShapes(m)));
    ModelSpec flat = m;
    flat.multimodal = false;
    const auto map = Build(m, {"hf-fused"}, {"hf", &manifest});
    ASSERT_THAT(map, IsOk()) << m.name;
    // With a manifest the prefix is the checkpoint's, so a flat config does too.
    for (const std::string& text :
         {TransformersConfigJson(m), TransformersConfigJson(flat), HubConfigJson(flat)}) {
      const auto config = ParseModelConfig(text);
      ASSERT_THAT(config, IsOk());
      const auto other = WeightMap::Build(FamilyOf(m), *config, {"hf-fused"}, {"hf", &manifest});
      ASSERT_THAT(other, IsOk()) << m.name;
      ASSERT_EQ(other->hf().size(), map->hf().size());
      for (int t = 0; t < map->hf().size(); ++t) {
        EXPECT_EQ(other->hf()[t].name, map->hf()[t].name);
        EXPECT_EQ(other->hf()[t].shape, map->hf()[t].shape);
        EXPECT_EQ(other->hf()[t].dtype, map->hf()[t].dtype);
        EXPECT_EQ(other->regions(t).size(), map->regions(t).size());
      }
      ASSERT_EQ(other->trainer().size(), map->trainer().size());
      for (size_t i = 0; i < map->trainer().size(); ++i) {
        EXPECT_EQ(other->trainer()[i].name, map->trainer()[i].name);
        EXPECT_EQ(other->trainer()[i].shape, map->trainer()[i].shape);
      }
    }
  }
}

TEST(WeightMapTest, TellsWhatEachRowMade) {
  const auto map = Build(TinyModel("Moe"), {"tunix"});
  ASSERT_THAT(map, IsOk());
  EXPECT_EQ(map->family(), "qwen3_moe");
  EXPECT_EQ(map->layout().name, "tunix");
  int64_t regions = 0;
  bool gates = false;
  for (const WeightMap::RowUse& row : map->rows()) {
    regions += row.regions;
    if (row.trainer_name != "layers.{i}.mlp.gate_proj") continue;
    gates = true;
    EXPECT_EQ(row.hf_name, "model.layers.{i}.mlp.experts.{e}.gate_proj.weight");
    EXPECT_EQ(row.hf_axes, "m h");
    EXPECT_EQ(row.trainer_axes, "{e} h m");
    EXPECT_EQ(row.regions, 2 * 3);
  }
  EXPECT_TRUE(gates);
  EXPECT_EQ(regions, 39);
  ASSERT_TRUE(map->FindTrainer("layers.1.mlp.router.kernel").has_value());
  EXPECT_EQ(
      map->trainer()[static_cast<size_t>(*map->FindTrainer("layers.1.mlp.router.kernel"))].shape,
      (Shape{8, 3}));
  EXPECT_FALSE(map->FindTrainer("layers.2.mlp.router.kernel").has_value());
}

TEST(WeightMapTest, TargetIsTheManifestsFormUnlessAskedFor) {
  const ModelSpec m = TinyModel("Moe");
  const std::vector<Elements> split = HfShapes(m), fused = HfFused(m, split);
  EXPECT_EQ(Build(m, {"tunix"})->hf().size(), 39);
  EXPECT_EQ(BuildFrom(split, m, {"tunix"})->hf().size(), 39);
  const int stacked = static_cast<int>(fused.size());
  EXPECT_EQ(BuildFrom(fused, m, {"tunix"})->hf().size(), stacked);
  EXPECT_EQ(BuildFrom(split, m, {"tunix"}, "hf-fused")->hf().size(), stacked);
  EXPECT_EQ(BuildFrom(fused, m, {"tunix"}, "hf")->hf().size(), 39);
}

// Released Gemma 4 files hold K and V of layers that use others'; the module in memory does not.
TEST(WeightMapTest, WhatTheTargetFormLacksIsLeftOut) {
  const ModelSpec disk = TinyModel("GemmaPleSharedKvOnDisk"), module = TinyModel("GemmaPle");
  for (const char* layout : {"hf", "hf-fused", "tunix"}) {
    const auto map = BuildFrom(HfShapes(disk), disk, {layout}, "hf-fused");
    ASSERT_THAT(map, IsOk()) << layout;
    EXPECT_EQ(map->hf().size(), module.tensors);
    for (const Elements& tensor : HfShapes(module)) {
      EXPECT_TRUE(map->hf().Find(tensor.name).has_value()) << tensor.name;
    }
    int unsent = 0;
    for (const WeightMap::TrainerTensor& tensor : map->trainer()) unsent += tensor.sent ? 0 : 1;
    // k_proj, v_proj and k_norm of two layers; tunix holds K and V in one.
    EXPECT_EQ(unsent, std::string(layout) == "hf" ? 6 : std::string(layout) == "tunix" ? 4 : 0);
  }
}

TEST(WeightMapTest, UnknownLayoutsAndTargetsListWhatExists) {
  EXPECT_THAT(Build(TinyModel("Moe"), {"megatron"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'qwen3_moe'"), HasSubstr("'megatron'"),
                             HasSubstr("hf, hf-fused, tunix, maxtext"))));
  EXPECT_THAT(Build(TinyModel("Moe"), {"tunix"}, {"tunix", nullptr}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'tunix'"), HasSubstr("'hf-fused'"))));
}

TEST(WeightMapTest, LayoutsThatCannotBeExactAreRefusedWithTheReason) {
  const auto refused = [](const char* model, const LayoutOptions& layout, const char* reason) {
    EXPECT_THAT(Build(TinyModel(model), layout).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason)))
        << model << " " << layout.name;
  };
  refused("Llama", {"maxtext"}, "head_dim^-0.5");
  refused("GemmaMoe", {"maxtext"}, "square root of the hidden size");
  refused("Next", {"tunix"}, "tunix has no model of this family");
  refused("MoeDenseLayer", {"tunix"}, "mlp_only_layers");
  refused("MoeDenseLayer", Scanned(1), "mlp_only_layers");
  refused("Llama", Scanned(1), "head_dim^-0.5");
}

TEST(WeightMapTest, ScansThatDoNotFitAreRefused) {
  const auto refused = [](const char* model, const LayoutOptions& layout, const char* reason) {
    EXPECT_THAT(Build(TinyModel(model), layout).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason)))
        << model;
  };
  refused("Next", Scanned(3), "scan_period is 3; it must divide the 4 layers");
  refused("Next", Scanned(1), "scan_period is 1");
  refused("Next", Scanned(2), "layer 1 does not fit");
  refused("NextTwoBlocks", Scanned(8), "layer 3 does not fit");
  refused("Qwen3Tied", Scanned(2), "scan_period is 2");
  refused("Moe", Scanned(2), "scan_period is 2");
  refused("Qwen3Tied", Scanned(0), "scan_period is 0");
  LayoutOptions unscanned = Scanned(0);
  unscanned.scanned = false;
  refused("Qwen3Tied", unscanned, "scan_period is 0");
  refused("Qwen3Tied", Scanned(1, 2), "scan_axis is 2");
  refused("Qwen3Tied", Scanned(1, -1), "scan_axis is -1");
  for (const char* layout : {"hf", "hf-fused", "tunix"}) {
    LayoutOptions options = Scanned(1);
    options.name = layout;
    refused("Qwen3Tied", options, "has no scanned form");
  }
  LayoutOptions tunix = Scanned(1);
  tunix.name = "tunix";
  refused("GemmaMoe", tunix, "has no scanned form");
}

TEST(WeightMapTest, ModelsThatAFamilyDoesNotKnowAreRefused) {
  ModelSpec next = TinyModel("Next");
  next.tied = true;
  EXPECT_THAT(Build(next, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tied head")));
  next = TinyModel("Next");
  next.value_heads = 3;
  EXPECT_THAT(Build(next, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'linear_num_value_heads' is 3, not a multiple")));
  next = TinyModel("Next");
  next.dense_layers = {1};
  EXPECT_THAT(Build(next, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("layers without experts")));
  ModelSpec gemma = TinyModel("GemmaMoe");
  gemma.tied = false;
  EXPECT_THAT(Build(gemma, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("untied head")));
  gemma = TinyModel("GemmaMoe");
  gemma.o_bias = true;
  EXPECT_THAT(Build(gemma, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'attention_bias'")));
  ModelSpec moe = TinyModel("Moe");
  moe.experts = 0;
  EXPECT_THAT(Build(moe, {"hf"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'num_experts'")));
}

TEST(WeightMapTest, WhatALayoutDoesNotHoldIsNamedWithoutAManifest) {
  const ModelSpec m = TinyModel("LlamaBiases");
  EXPECT_THAT(
      Build(m, {"tunix"}).status(),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("'tunix'"), HasSubstr("14 HF tensors that this layout does not hold"),
                HasSubstr("model.layers.0.self_attn.q_proj.bias"), HasSubstr("manifest"))));
  const auto map = BuildFrom(HfShapes(m), m, {"tunix"});
  ASSERT_THAT(map, IsOk());
  EXPECT_TRUE(map->passes_through(*map->hf().Find("model.layers.1.mlp.up_proj.bias")));
  EXPECT_FALSE(map->passes_through(*map->hf().Find("model.layers.1.mlp.up_proj.weight")));
}

TEST(WeightMapTest, CheckpointsThatDisagreeWithTheConfigAreNamed) {
  const ModelSpec moe = TinyModel("Moe");
  const auto disagrees = [&](const ModelSpec& config, const std::vector<Elements>& disk,
                             const std::vector<std::string>& parts) {
    const auto status = BuildFrom(disk, config, {"tunix"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : parts) EXPECT_THAT(status.message(), HasSubstr(part));
  };
  // An expert is missing.
  std::vector<Elements> disk;
  for (const Elements& tensor : HfShapes(moe)) {
    if (!absl::StrContains(tensor.name, "layers.1.mlp.experts.2.")) disk.push_back(tensor);
  }
  disagrees(
      moe, disk,
      {"3 of the map that the checkpoint lacks", "model.layers.1.mlp.experts.2.down_proj.weight"});
  // A layer too many, on disk and in the config.
  ModelSpec more = moe;
  more.layers = 3;
  disagrees(moe, HfShapes(more),
            {"18 in the checkpoint that the map does not know", "model.layers.2."});
  disagrees(more, HfShapes(moe), {"18 of the map that the checkpoint lacks", "model.layers.2."});
  // Tensors of nobody.
  disk = HfShapes(moe);
  disk[3].name = "model.layers.0.self_attn.rotary_emb.inv_freq";
  disagrees(moe, disk,
            {"1 in the checkpoint that the map does not know", "inv_freq",
             "1 of the map that the checkpoint lacks"});
  // Swapped axes on disk.
  disk = HfShapes(moe);
  for (Elements& tensor : disk) {
    if (tensor.name == "model.layers.0.mlp.gate.weight")
      std::swap(tensor.shape[0], tensor.shape[1]);
  }
  disagrees(moe, disk,
            {"1 with another shape",
             "'model.layers.0.mlp.gate.weight' [8, 3], by the "
             "config [3, 8]"});
  // MTP in a family that knows none.
  disk = HfShapes(moe);
  disk.push_back({"mtp.norm.weight", {8}, {}});
  disagrees(moe, disk, {"1 in the checkpoint that the map does not know: mtp.norm.weight"});
}

TEST(WeightMapTest, DerivedHeadDimIsCaught) {
  ModelSpec published;
  for (const ModelSpec& m : testing::PublishedModels()) {
    if (m.name == "Qwen3-0.6B") published = m;
  }
  ModelSpec derived = published;
  derived.head_dim = 1024 / 16;  // instead of 128
  EXPECT_THAT(
      BuildFrom(HfShapes(published), derived, {"tunix"}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("with another shape"),
                     HasSubstr("q_proj.weight' [2048, 1024], by the config [1024, 1024]"))));
}

// A user's own table, of a model that has nothing else.
absl::Status BuildTable(std::vector<Row> rows, const MapOptions& options = {}) {
  const auto config = ParseModelConfig(HubConfigJson(TinyModel("Qwen3Untied")));
  if (!config.ok()) return config.status();
  Family family;
  family.name = "mine";
  family.model_types = {"mine"};
  family.layouts = {"hf", "trainer"};
  family.sizes = [](const ModelConfig&, int64_t) -> AxisSizes {
    return {{"a", 2}, {"b", 3}, {"e", 2}};
  };
  family.groups = {{Always, /*each_layer=*/false, std::move(rows)}};
  family.passthrough = {"late."};
  family.tied_head = "";
  return WeightMap::Build(family, *config, {"trainer"}, options).status();
}

TEST(WeightMapTest, TablesThatAreNotOneToOneAreRefused) {
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "b a"}}}), IsOk());
  EXPECT_THAT(BuildTable({{{"w", "({0/2} a) b"}, {"x", "b a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 HF tensors not written exactly once: 'w'"),
                             HasSubstr("element [2, 0] has no counterpart"))));
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "b a"}}, {{"w", "a b"}, {"y", "b a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 HF tensors not written exactly once: 'w'"),
                             HasSubstr("element [0, 0] has 2 counterparts"))));
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "({1/2} b) a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 trainer tensors not read exactly once: 'x'"),
                             HasSubstr("element [0, 0] has no counterpart"))));
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "b a"}}, {{"v", "a b"}, {"x", "b a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 trainer tensors not read exactly once: 'x'"),
                             HasSubstr("element [0, 0] has 2 counterparts"))));
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'w' <-> 'x'")));
  EXPECT_THAT(BuildTable({{{"w", "a z"}, {"x", "z a"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("z")));
  EXPECT_THAT(BuildTable({{{"w", "(a b"}, {"x", "a b"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(">>>")));
  EXPECT_THAT(BuildTable({{{"w{q}", "a b"}, {"x", "a b"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("{q}")));
  EXPECT_THAT(BuildTable({{{"w", "a b"}}}), Not(IsOk()));
  EXPECT_THAT(BuildTable({{{"w", "a b"}, {"x", "a b"}}, {{"w", "b a"}, {"y", "b a"}}}),
              Not(IsOk()));
}

TEST(WeightMapTest, EveryTensorThatIsNotOneToOneIsListedOnBothSides) {
  const std::vector<Row> rows = {
      {{"twice", "a b"}, {"x", "b a"}},
      {{"twice", "a b"}, {"y", "b a"}},
      {{"half", "({1/2} a) b"}, {"z", "a b"}},
      {{"good", "a b"}, {"v", "a b"}},
      {{"p", "a"}, {"shared", "a"}},
      {{"q", "a"}, {"shared", "a"}},
      {{"r", "b"}, {"half read", "(b {0/2})"}},
      {{"nobody's", "b"}, kAbsent},
      {kAbsent, {"state", "a"}},
  };
  const absl::Status status = BuildTable(rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "family 'mine', layout 'trainer': "
            "1 HF tensors that this layout does not hold: nobody's; "
            "2 HF tensors not written exactly once: 'twice' (element [0, 0] has 2 counterparts), "
            "'half' (element [0, 0] has no counterpart); "
            "2 trainer tensors not read exactly once: 'shared' (element [0] has 2 counterparts), "
            "'half read' (element [1] has no counterpart); "
            "what a layout does not hold passes through from the source checkpoint if there is a "
            "manifest of it");
}

TEST(WeightMapTest, ListsOfTensorsThatAreNotOneToOneAreBounded) {
  std::vector<Row> rows;
  for (int i = 0; i < 9; ++i) {
    rows.push_back({{absl::StrCat("hf", i), "({1/2} a)"}, {absl::StrCat("t", i), "a {1/2}"}});
  }
  const absl::Status status = BuildTable(rows);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("9 HF tensors not written exactly once: 'hf0' ("),
                                     HasSubstr("'hf4' (element [0] has no counterpart), ...;"),
                                     HasSubstr("9 trainer tensors not read exactly once: 't0' ("),
                                     HasSubstr("'t4' (element [0, 0] has no counterpart), ..."))));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hf5")));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("t5")));
}

// What passes through does so whole: a tensor that a layout holds in part is no less wrong.
TEST(WeightMapTest, AManifestDoesNotMakeUpForHalfATensor) {
  const Manifest manifest(
      *RefitInfo::Create({{"w", {4}, DType::kBF16}, {"late.v", {2}, DType::kBF16}}));
  EXPECT_THAT(BuildTable({{{"w", "({1/2} a)"}, {"x", "a"}}}, {"", &manifest}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 HF tensors not written exactly once: 'w'"),
                             Not(HasSubstr("does not hold")))));
  EXPECT_THAT(BuildTable({{{"w", "(e a)"}, {"x", "e a"}}}, {"", &manifest}), IsOk());
}

}  // namespace
}  // namespace weight_sync::refit
