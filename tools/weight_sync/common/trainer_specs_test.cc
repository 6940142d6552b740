// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/trainer_specs.h"

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/manifest.h"
#include "refit/maps/qwen3_moe.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::tools {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using refit::DType;
using refit::Shape;
using refit::TensorSpec;
using ::testing::HasSubstr;

// The tunix map of a tiny Qwen3-MoE whose expert 1 has `expert` for its up_proj, all else bfloat16.
absl::StatusOr<std::vector<TensorSpec>> Specs(DType expert, bool float32_masters) {
  const refit::testing::ModelSpec model = refit::testing::TinyModel("Moe");
  std::vector<TensorSpec> tensors;
  for (const refit::testing::Elements& hf : refit::testing::HfShapes(model)) {
    const bool is_expert = absl::StrContains(hf.name, "experts.1.up_proj");
    tensors.push_back({hf.name, *Shape::Create(hf.shape), is_expert ? expert : DType::kBF16});
  }
  const refit::Manifest manifest(*refit::RefitInfo::Create(tensors));
  const auto map = refit::WeightMap::Build(
      refit::Qwen3MoeFamily(), *refit::ParseModelConfig(refit::testing::HubConfigJson(model)),
      {"tunix"}, {"", &manifest});
  if (!map.ok()) return map.status();
  return TrainerSpecs(*map, DType::kBF16, float32_masters);
}

TEST(TrainerSpecsTest, HaveTheTypesOfWhatTheyAreMadeOf) {
  for (const bool masters : {false, true}) {
    const auto specs = Specs(DType::kBF16, masters);
    ASSERT_THAT(specs, IsOk());
    for (const TensorSpec& tensor : *specs) {
      EXPECT_EQ(tensor.dtype, masters ? DType::kF32 : DType::kBF16) << tensor.name;
    }
  }
}

TEST(TrainerSpecsTest, FloatsOfBothSizesBecomeTheLarger) {
  const auto specs = Specs(DType::kF32, /*float32_masters=*/false);
  ASSERT_THAT(specs, IsOk());
  for (const TensorSpec& tensor : *specs) {
    const bool mixed = absl::EndsWith(tensor.name, "mlp.up_proj");
    EXPECT_EQ(tensor.dtype, mixed ? DType::kF32 : DType::kBF16) << tensor.name;
  }
}

TEST(TrainerSpecsTest, OtherMixturesAreRefusedByName) {
  EXPECT_THAT(Specs(DType::kF16, false),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("layers.0.mlp.up_proj")));
}

}  // namespace
}  // namespace weight_sync::tools
