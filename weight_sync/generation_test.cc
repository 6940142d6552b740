// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/generation.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync {
namespace {

TEST(GenerationTest, MemoryTagsAreSpelledAsEnginesSpellThem) {
  std::vector<std::string> names;
  for (const MemoryTag tag : kAllTags) names.emplace_back(MemoryTagName(tag));
  EXPECT_THAT(names, ::testing::ElementsAre("weights", "kv_cache"));
}

}  // namespace
}  // namespace weight_sync
