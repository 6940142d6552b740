// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/progress_line.h"

#include <cstdio>
#include <string>

#include "gtest/gtest.h"

namespace weight_sync::tools {
namespace {

TEST(ProgressLineTest, BarFillsUp) {
  EXPECT_EQ(ProgressBar(0, 200, 10), "[          ]   0 %");
  EXPECT_EQ(ProgressBar(50, 200, 10), "[==        ]  25 %");
  EXPECT_EQ(ProgressBar(200, 200, 10), "[==========] 100 %");
  EXPECT_EQ(ProgressBar(0, 0, 10), "");
  // Where 100 * done would not fit.
  EXPECT_EQ(ProgressBar(int64_t{1} << 62, int64_t{1} << 62, 4), "[====] 100 %");
}

// What a stream gets from a line that is live or not.
std::string Printed(bool live) {
  std::FILE* const file = std::tmpfile();
  {
    ProgressLine line(file, live);
    line.Show("loading", 0, 100);
    line.Show("loading", 1, 100'000);  // looks the same
    line.Show("loading", 100, 100);
  }
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  EXPECT_EQ(std::fseek(file, 0, SEEK_SET), 0);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(ProgressLineTest, OverwritesItselfAndLeavesNothing) {
  const std::string clear = "\r\x1b[K", loading = "loading       ";
  EXPECT_EQ(Printed(/*live=*/true), clear + loading + "[" + std::string(30, ' ') + "]   0 %" +
                                        clear + loading + "[" + std::string(30, '=') + "] 100 %" +
                                        clear);
}

TEST(ProgressLineTest, PrintsNothingWhereNobodyWatches) {
  EXPECT_EQ(Printed(/*live=*/false), "");
  std::FILE* const file = std::tmpfile();
  EXPECT_FALSE(OnTerminal(file));
  std::fclose(file);
}

}  // namespace
}  // namespace weight_sync::tools
