// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/tree_names.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/maps/weight_map.h"
#include "refit/testing/family_trees.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using testing::FamilyOf;
using testing::HubConfigJson;
using testing::LayoutCase;
using testing::LayoutCases;
using testing::ModelSpec;
using testing::TinyModels;

WeightMap MapOf(const std::string& name, const LayoutOptions& layout) {
  for (const ModelSpec& m : TinyModels()) {
    if (m.name != name) continue;
    return WeightMap::Build(FamilyOf(m), ParseModelConfig(HubConfigJson(m)).value(), layout)
        .value();
  }
  ADD_FAILURE() << "no model " << name;
  std::abort();
}

// jax.tree_util.keystr, which writes numbers without quotes.
std::string Keystr(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) {
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    absl::StrAppend(&path, number ? absl::StrCat("[", part, "]") : absl::StrCat("['", part, "']"));
  }
  return path;
}

TEST(TreeNamesTest, EveryNameOfEveryLayoutIsFoundHoweverItIsWritten) {
  int names_seen = 0;
  for (const ModelSpec& m : TinyModels()) {
    for (const LayoutCase& c : LayoutCases(m)) {
      if (c.manifest) continue;
      SCOPED_TRACE(absl::StrCat(m.name, ", ", c.label));
      const auto map = WeightMap::Build(FamilyOf(m), ParseModelConfig(HubConfigJson(m)).value(),
                                        c.layout, {c.target});
      ASSERT_THAT(map, IsOk());
      const TreeNames names(*map);
      for (const WeightMap::TrainerTensor& tensor : map->trainer()) {
        const std::vector<std::string> parts = absl::StrSplit(tensor.name, absl::ByAnyChar(".-/"));
        EXPECT_EQ(names.NameOf(tensor.name), tensor.name);
        for (const char* separator : {".", "/", "-", "']['"}) {
          EXPECT_EQ(names.NameOf(absl::StrJoin(parts, separator)), tensor.name);
        }
        EXPECT_EQ(names.NameOf(absl::StrJoin(parts, "/") + "/value"), tensor.name);
        EXPECT_EQ(names.NameOf(Keystr(parts)), tensor.name);
        EXPECT_EQ(names.NameOf(Keystr(parts) + ".value"), tensor.name);
        EXPECT_EQ(names.NameOf(Keystr(parts) + "['value']"), tensor.name);
        ++names_seen;
      }
    }
  }
  EXPECT_GT(names_seen, 1000);
}

TEST(TreeNamesTest, OtherPathsStayThemselves) {
  const TreeNames names(MapOf("Qwen3Untied", {"tunix"}));
  for (const char* path : {"", "value", "layers/0/attn", "layers/00/attn/q_proj/w",
                           "layers/0/attn/q_proj/w/value/value", "model/layers/0/attn/q_proj/w",
                           "layers/0/attn/q_projw"}) {
    EXPECT_EQ(names.NameOf(path), path);
  }
}

TEST(TreeNamesTest, TheTiedHeadBesideTheEmbeddingIsAName) {
  const TreeNames names(MapOf("Qwen3Tied", {"hf"}));
  EXPECT_EQ(names.NameOf("lm_head/weight/value"), "lm_head.weight");
}

}  // namespace
}  // namespace weight_sync::refit
