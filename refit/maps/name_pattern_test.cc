// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/name_pattern.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NamePatternTest, PutsIndicesIntoTheirBraces) {
  const auto name = NamePattern::Parse("layers.{i}.experts.{e}.{i}{block}-{local}");
  ASSERT_THAT(name, IsOk());
  EXPECT_EQ(name->Format({12, 3, 4, 5}), "layers.12.experts.3.124-5");
  EXPECT_EQ(name->text(), "layers.{i}.experts.{e}.{i}{block}-{local}");
  EXPECT_TRUE(name->Uses(MapIndex::kLayer));
  EXPECT_TRUE(name->Uses(MapIndex::kLocal));
}

TEST(NamePatternTest, NamesWithoutIndicesStayAsTheyAre) {
  for (const char* text : {"", "lm_head.weight"}) {
    const auto name = NamePattern::Parse(text);
    ASSERT_THAT(name, IsOk());
    EXPECT_EQ(name->Format({1, 2, 3, 4}), text);
    EXPECT_FALSE(name->Uses(MapIndex::kLayer));
    EXPECT_FALSE(name->Uses(MapIndex::kExpert));
  }
}

TEST(NamePatternTest, IndicesByName) {
  EXPECT_EQ(FindMapIndex("i"), MapIndex::kLayer);
  EXPECT_EQ(FindMapIndex("e"), MapIndex::kExpert);
  EXPECT_EQ(FindMapIndex("block"), MapIndex::kBlock);
  EXPECT_EQ(FindMapIndex("local"), MapIndex::kLocal);
  EXPECT_EQ(FindMapIndex("x"), std::nullopt);
}

TEST(NamePatternTest, BadBracesAreShown) {
  for (const char* text : {"a.{x}.b", "a.{}.b", "a.{i", "{", "a.i}.b", "a.{{i}}"}) {
    EXPECT_THAT(NamePattern::Parse(text).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("name pattern"), HasSubstr(text))));
  }
  EXPECT_THAT(NamePattern::Parse("a.{x}").status().message(), HasSubstr("{i} {e} {block} {local}"));
}

}  // namespace
}  // namespace weight_sync::refit
