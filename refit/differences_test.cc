// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/differences.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

TEST(DifferencesTest, CountsAllAndShowsTheFirstFive) {
  Differences missing("missing");
  EXPECT_TRUE(missing.empty());
  missing.Add("a");
  EXPECT_FALSE(missing.empty());
  EXPECT_EQ(missing.ToString(), "1 missing: a");
  for (const char* name : {"b", "c", "d", "e"}) missing.Add(name);
  EXPECT_EQ(missing.ToString(), "5 missing: a, b, c, d, e");
  for (int i = 0; i < 95; ++i) missing.Add(absl::StrCat("f", i));
  EXPECT_EQ(missing.ToString(), "100 missing: a, b, c, d, e, ...");
}

}  // namespace
}  // namespace weight_sync::refit
