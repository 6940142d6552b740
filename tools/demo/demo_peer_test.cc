// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo on a published checkpoint. The environment is made by `tools/peers/setup safetensors`;
// without it the test is skipped.

#include <cstdio>
#include <string>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "tools/demo/demo_process.h"

namespace weight_sync::demo {
namespace {

TEST(DemoPeerTest, SyncsAPublishedCheckpoint) {
  std::string environment;
  // NOLINTNEXTLINE(bugprone-command-processor): no word of it comes from outside
  FILE* const found = ::popen("tools/peers/setup --find safetensors", "r");
  ASSERT_NE(found, nullptr);
  char buffer[256];
  while (std::fgets(buffer, sizeof(buffer), found) != nullptr) environment += buffer;
  if (::pclose(found) != 0) GTEST_SKIP() << "run tools/peers/setup safetensors";
  absl::StripAsciiWhitespace(&environment);

  int exit_code;
  const nlohmann::json result =
      RunDemoForJson({"--checkpoint", environment + "/checkpoint"}, &exit_code);
  EXPECT_EQ(exit_code, 0) << result;
  EXPECT_EQ(result.at("checkpoint").at("tensors"), 104);
  EXPECT_GT(result.at("checkpoint").at("bytes"), 90'000'000);
  EXPECT_EQ(result.at("steps").size(), 5);
}

}  // namespace
}  // namespace weight_sync::demo
