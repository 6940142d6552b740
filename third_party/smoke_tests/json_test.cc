// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "nlohmann/json.hpp"

#include "gtest/gtest.h"

namespace {

TEST(JsonTest, ParsesASafetensorsHeader) {
  const auto header =
      nlohmann::json::parse(R"({"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})");
  EXPECT_EQ(header["w"]["dtype"], "BF16");
  EXPECT_EQ(header["w"]["shape"], (nlohmann::json{2, 3}));
}

TEST(JsonTest, ReportsBadInputWithoutAnException) {
  EXPECT_TRUE(nlohmann::json::parse("{", nullptr, /*allow_exceptions=*/false).is_discarded());
}

}  // namespace
