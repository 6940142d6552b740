// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/saved_names.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::convert {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SavedNamesTest, ManySpellingsAreOnePath) {
  for (const char* name :
       {"layers.0.attn.q_proj.w", "layers/0/attn/q_proj/w", "layers-0-attn-q_proj-w",
        "layers.0.attn.q_proj.w.value", "['layers'][0]['attn']['q_proj']['w']",
        ".layers[0].attn.q_proj.w.value", "params/layers/0/attn/q_proj/w",
        "params.params.layers.0.attn.q_proj.w", "[\"layers\"][0][\"attn\"].q_proj.w"}) {
    EXPECT_EQ(PathOf(name), "layers.0.attn.q_proj.w") << name;
  }
  EXPECT_EQ(PathOf("params-decoder-layers-self_attention-query_norm-scale"),
            PathOf("decoder/layers/self_attention/query_norm/scale"));
}

TEST(SavedNamesTest, OnlyWhatSurroundsAPathIsLeftAway) {
  EXPECT_EQ(PathOf("a.value.b"), "a.value.b");
  EXPECT_EQ(PathOf("a.params"), "a.params");
  EXPECT_EQ(PathOf("params"), "params");
  EXPECT_EQ(PathOf("value"), "value");
  EXPECT_EQ(PathOf("./-[]'"), "");
  EXPECT_NE(PathOf("layers.10.w"), PathOf("layers.1.0.w"));
}

class FindSavedTest : public ::testing::Test {
 protected:
  refit::WeightMap Map() {
    const refit::testing::ModelSpec spec = refit::testing::TinyModel("Qwen3Tied");
    return *refit::WeightMap::Build(refit::testing::FamilyOf(spec),
                                    *refit::ParseModelConfig(refit::testing::HubConfigJson(spec)),
                                    {"tunix"});
  }
  // The names that tensors of these names are found under.
  absl::StatusOr<std::vector<std::string>> Find(const std::vector<std::string>& names) {
    std::vector<refit::NamedTensor> tensors;
    for (const std::string& name : names) tensors.push_back({name, {}});
    const auto arrays = FindSaved(Map(), *refit::Checkpoint::OfTensors(tensors));
    if (!arrays.ok()) return arrays.status();
    std::vector<std::string> found;
    for (const refit::TrainerArray& array : *arrays) found.push_back(array.name);
    return found;
  }
};

TEST_F(FindSavedTest, NamesBecomeTheMapsAndUnknownOnesStay) {
  const auto found = Find({"layers/1/attn/k_proj/w", "final_norm.w.value", "optimizer/step"});
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(*found, ElementsAre("layers.1.attn.k_proj.w", "final_norm.w", "optimizer/step"));
}

TEST_F(FindSavedTest, TwoSpellingsOfOnePathAreRefused) {
  EXPECT_THAT(Find({"final_norm/w", "final_norm.w"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'final_norm/w'"), HasSubstr("'final_norm.w'"))));
}

}  // namespace
}  // namespace weight_sync::convert
