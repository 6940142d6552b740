// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/trainer_arrays.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::Elements;
using ::testing::HasSubstr;
using testing::ModelSpec;
using testing::TinyModel;

// A trainer's arrays of a tiny model, and the map that takes them.
class TrainerArraysTest : public ::testing::Test {
 protected:
  void Make(const std::string& model, const std::string& layout) {
    const ModelSpec m = TinyModel(model);
    const auto config = ParseModelConfig(testing::HubConfigJson(m));
    ASSERT_THAT(config, IsOk());
    auto map = WeightMap::Build(testing::FamilyOf(m), *config, {layout});
    ASSERT_THAT(map, IsOk());
    map_.emplace(*std::move(map));
    for (const testing::LayoutCase& c : testing::LayoutCases(m)) {
      if (c.manifest || c.layout.name != layout || c.target != "hf" || c.layout.scanned) continue;
      if (!bytes_.empty()) break;  // the padded one
      for (const Elements& tensor : c.tree) {
        bytes_.push_back(Bytes(tensor, testing::Storage::kBF16));
        arrays_.push_back({tensor.name, View(bytes_.back(), tensor.shape)});
      }
    }
    ASSERT_THAT(Match(), IsOk());
  }

  static TensorView View(const std::vector<std::byte>& bytes, const std::vector<int64_t>& shape) {
    return TensorView::Contiguous(bytes.data(), DType::kBF16, *Shape::Create(shape));
  }
  absl::Status Match() const { return MatchArrays(*map_, arrays_).status(); }
  TrainerArray& Array(const std::string& name) {
    return *std::find_if(arrays_.begin(), arrays_.end(),
                         [&](const TrainerArray& array) { return array.name == name; });
  }
  std::vector<ArraySpec> Specs() const {
    std::vector<ArraySpec> specs;
    for (const TrainerArray& array : arrays_) {
      specs.push_back({array.name, array.view.dtype(), array.view.shape(), {}});
    }
    return specs;
  }
  static ArraySpec& Spec(std::vector<ArraySpec>& specs, const std::string& name) {
    return *std::find_if(specs.begin(), specs.end(),
                         [&](const ArraySpec& spec) { return spec.name == name; });
  }
  static auto Refused(const std::string& what, const std::string& name) {
    return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(what), HasSubstr(name)));
  }

  std::optional<WeightMap> map_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TrainerArray> arrays_;
};

TEST_F(TrainerArraysTest, AreBroughtIntoTheMapsOrder) {
  Make("Moe", "tunix");
  std::reverse(arrays_.begin(), arrays_.end());
  const auto matched = MatchArrays(*map_, arrays_);
  ASSERT_THAT(matched, IsOk());
  ASSERT_EQ(matched->size(), map_->trainer().size());
  for (size_t i = 0; i < matched->size(); ++i) {
    EXPECT_EQ((*matched)[i].data(), Array(map_->trainer()[i].name).view.data());
  }
}

TEST_F(TrainerArraysTest, MissingAndUnreadArraysAreBothListed) {
  Make("Moe", "tunix");
  Array("layers.1.mlp.up_proj").name = "layers.2.mlp.up_proj";
  const auto status = Match();
  EXPECT_THAT(status, Refused("1 missing", "layers.1.mlp.up_proj"));
  EXPECT_THAT(status, Refused("1 that no HF tensor is made of", "layers.2.mlp.up_proj"));
  EXPECT_THAT(status, Refused("'qwen3_moe'", "'tunix'"));
}

TEST_F(TrainerArraysTest, NamesWithAnotherPrefixAreAllCounted) {
  Make("Qwen3Untied", "hf");
  for (TrainerArray& array : arrays_) array.name = "_checkpoint_wrapped_module." + array.name;
  const auto status = Match();
  EXPECT_THAT(status, Refused("25 missing", "model.embed_tokens.weight"));
  EXPECT_THAT(status, Refused("25 that no HF tensor is made of", "_checkpoint_wrapped_module."));
}

// A random number generator's counter in a tree of parameters is no parameter.
TEST_F(TrainerArraysTest, ScalarsOfTheTrainersStateAreNamed) {
  Make("Qwen3Untied", "tunix");
  arrays_.push_back(
      {"rngs.params.count", TensorView::Contiguous(bytes_[0].data(), DType::kU32, {})});
  EXPECT_THAT(Match(), Refused("1 that no HF tensor is made of", "rngs.params.count"));
}

TEST_F(TrainerArraysTest, TooFewExpertsAreAnotherShape) {
  Make("Moe", "tunix");
  TrainerArray& experts = Array("layers.0.mlp.up_proj");
  experts.view = *experts.view.Sliced(0, 0, 2);
  EXPECT_THAT(Match(),
              Refused("1 of another shape: 'layers.0.mlp.up_proj'", "[2, 8, 5] for [3, 8, 5]"));
}

TEST_F(TrainerArraysTest, SwappedAxesAreAnotherShape) {
  Make("Moe", "tunix");
  TrainerArray& query = Array("layers.0.attn.q_proj.w");
  query.view = *query.view.Transposed(0, 1);
  EXPECT_THAT(Match(), Refused("'layers.0.attn.q_proj.w'", "[4, 8, 3] for [8, 4, 3]"));
  query.view = View(bytes_[0], {96});
  EXPECT_THAT(Match(), Refused("'layers.0.attn.q_proj.w'", "[96] for [8, 4, 3]"));
}

TEST_F(TrainerArraysTest, ANameTwice) {
  Make("Qwen3Untied", "maxtext");
  arrays_.push_back(Array("params-decoder-decoder_norm-scale"));
  EXPECT_THAT(Match(), Refused("1 given twice", "params-decoder-decoder_norm-scale"));
}

TEST_F(TrainerArraysTest, PlaceholdersOfOffloadedParameters) {
  Make("Qwen3Untied", "tunix");
  Array("layers.1.mlp.gate_proj.kernel").view =
      TensorView::Contiguous(nullptr, DType::kBF16, Shape{0});
  EXPECT_THAT(Match(), Refused("'layers.1.mlp.gate_proj.kernel'", "[0] for [8, 10]"));
  Array("layers.1.mlp.gate_proj.kernel").view =
      TensorView::Contiguous(nullptr, DType::kBF16, Shape{8, 10});
  EXPECT_THAT(Match(), Refused("1 without memory", "layers.1.mlp.gate_proj.kernel"));
}

TEST_F(TrainerArraysTest, OnlyThePaddedDimensionMayBeLonger) {
  Make("Qwen3Untied", "maxtext");
  const std::vector<std::byte> large(1024);
  TrainerArray& embedding = Array("params-token_embedder-embedding");
  const TensorView was = embedding.view;
  embedding.view = View(large, {16, 8});
  EXPECT_THAT(Match(), IsOk());
  embedding.view = View(large, {10, 8});
  EXPECT_THAT(Match(), Refused("'params-token_embedder-embedding'", "[10, 8] for [11, 8]"));
  embedding.view = View(large, {11, 9});
  EXPECT_THAT(Match(), Refused("'params-token_embedder-embedding'", "[11, 9] for [11, 8]"));
  embedding.view = was;
  Array("params-decoder-layers_0-mlp-wo-kernel").view = View(large, {11, 8});
  EXPECT_THAT(Match(), Refused("'params-decoder-layers_0-mlp-wo-kernel'", "[11, 8] for [10, 8]"));
}

TEST_F(TrainerArraysTest, AHeldCopyOfATiedHeadMustEqualItsEmbedding) {
  Make("Qwen3Tied", "hf");
  const TensorView embedding = Array("model.embed_tokens.weight").view;
  arrays_.push_back({"lm_head.weight", embedding});
  EXPECT_THAT(Match(), IsOk());  // the same memory
  std::vector<std::byte> copy(embedding.data(), embedding.data() + embedding.num_bytes());
  arrays_.back().view = View(copy, {11, 8});
  EXPECT_THAT(Match(), IsOk());
  copy[17] ^= std::byte{1};
  EXPECT_THAT(Match(), Refused("'lm_head.weight' differs", "'model.embed_tokens.weight'"));
  arrays_.back().view = View(copy, {8, 11});
  EXPECT_THAT(Match(), Refused("'lm_head.weight' differs", "'model.embed_tokens.weight'"));
}

TEST_F(TrainerArraysTest, AnUntiedModelsHeadIsAnArrayLikeOthers) {
  Make("Qwen3Untied", "hf");
  arrays_.push_back({"lm_head.weight", Array("model.embed_tokens.weight").view});
  EXPECT_THAT(Match(), Refused("1 given twice", "lm_head.weight"));
}

TEST_F(TrainerArraysTest, SpecsMatchWithoutMemory) {
  Make("Moe", "tunix");
  std::vector<ArraySpec> specs = Specs();
  std::reverse(specs.begin(), specs.end());
  ArraySpec& router = Spec(specs, "layers.0.mlp.router.kernel");
  router.dtype = DType::kF32;
  router.strides = {1, 8};  // [8, 3], its first dimension fastest
  const auto matched = MatchSpecs(*map_, specs);
  ASSERT_THAT(matched, IsOk());
  ASSERT_EQ(matched->size(), map_->trainer().size());
  for (size_t i = 0; i < matched->size(); ++i) {
    const TensorView& view = (*matched)[i];
    EXPECT_EQ(view.data(), nullptr);
    EXPECT_EQ(view.shape(), map_->trainer()[i].shape);
    const bool routes = map_->trainer()[i].name == "layers.0.mlp.router.kernel";
    EXPECT_EQ(view.dtype(), routes ? DType::kF32 : DType::kBF16);
    EXPECT_EQ(view.is_contiguous(), !routes);
  }
}

TEST_F(TrainerArraysTest, SpecsAreRefusedAsArraysAre) {
  Make("Moe", "tunix");
  std::vector<ArraySpec> specs = Specs();
  Spec(specs, "layers.1.mlp.up_proj").name = "layers.2.mlp.up_proj";
  Spec(specs, "layers.0.mlp.up_proj").shape = {2, 8, 5};
  Spec(specs, "layers.1.mlp.gate_proj").shape = {0};
  specs.push_back(Spec(specs, "final_norm.w"));
  const auto status = MatchSpecs(*map_, specs).status();
  EXPECT_THAT(status, Refused("1 missing", "layers.1.mlp.up_proj"));
  EXPECT_THAT(status, Refused("1 that no HF tensor is made of", "layers.2.mlp.up_proj"));
  EXPECT_THAT(status, Refused("2 of another shape", "'layers.0.mlp.up_proj' [2, 8, 5]"));
  EXPECT_THAT(status, Refused("1 given twice", "'layers.1.mlp.gate_proj' [0] for [3, 8, 5]"));
}

TEST_F(TrainerArraysTest, StridesThatDescribeNoArrayAreNamed) {
  Make("Moe", "tunix");
  const auto refused = [&](std::vector<int64_t> strides, const std::string& what) {
    std::vector<ArraySpec> specs = Specs();
    Spec(specs, "layers.0.mlp.router.kernel").strides = std::move(strides);
    EXPECT_THAT(MatchSpecs(*map_, specs).status(),
                Refused(what, "array 'layers.0.mlp.router.kernel'"));
  };
  refused({1}, "there are 1 strides");
  refused({INT64_MAX / 4, 1}, "64 bits");
  std::vector<ArraySpec> specs = Specs();
  specs[0].shape = {INT64_MAX / 4, 2};
  EXPECT_THAT(MatchSpecs(*map_, specs).status(),
              Refused("too many bytes", "array '" + specs[0].name + "'"));
}

TEST_F(TrainerArraysTest, ASpecOfATiedHeadMustBeAsItsEmbedding) {
  Make("Qwen3Tied", "hf");
  std::vector<ArraySpec> specs = Specs();
  specs.push_back({"lm_head.weight", DType::kBF16, {11, 8}, {}});
  EXPECT_THAT(MatchSpecs(*map_, specs), IsOk());
  specs.back().dtype = DType::kF32;
  EXPECT_THAT(MatchSpecs(*map_, specs).status(),
              Refused("'lm_head.weight' differs", "'model.embed_tokens.weight'"));
  specs.back() = {"lm_head.weight", DType::kBF16, {8, 11}, {}};
  EXPECT_THAT(MatchSpecs(*map_, specs).status(),
              Refused("'lm_head.weight' differs", "'model.embed_tokens.weight'"));
}

}  // namespace
}  // namespace weight_sync::refit
