// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/human_numbers.h"

#include "gtest/gtest.h"

namespace weight_sync::tools {
namespace {

TEST(HumanNumbersTest, ReadEasily) {
  EXPECT_EQ(HumanBytes(0), "0 bytes");
  EXPECT_EQ(HumanBytes(999), "999 bytes");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(299'936'256), "299.9 MB");
  EXPECT_EQ(HumanBytes(12'340'000'000), "12.3 GB");
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(299'936'256), "299,936,256");
  EXPECT_EQ(HumanRate(3.456e9), "3.46");
}

}  // namespace
}  // namespace weight_sync::tools
