// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "CLI/CLI.hpp"
#include "gtest/gtest.h"

namespace {

TEST(Cli11Test, ParsesOptions) {
  CLI::App app;
  std::string checkpoint;
  int steps = 0;
  app.add_option("--checkpoint", checkpoint)->required();
  app.add_option("--steps", steps);
  app.parse("--checkpoint dir --steps 3");
  EXPECT_EQ(checkpoint, "dir");
  EXPECT_EQ(steps, 3);
}

TEST(Cli11Test, RefusesAnUnknownOption) {
  CLI::App app;
  EXPECT_THROW(app.parse("--no-such-option"), CLI::ExtrasError);
}

}  // namespace
