// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo on a published checkpoint. The environment is made by `tools/peers/setup safetensors`;
// without it the test is skipped.

#include "gtest/gtest.h"
#include "tools/demo/demo_process.h"
#include "tools/peers/peer_environment.h"

namespace weight_sync::demo {
namespace {

TEST(DemoPeerTest, SyncsAPublishedCheckpoint) {
  const auto environment = peers::FindPeerEnvironment("safetensors");
  if (!environment.ok()) GTEST_SKIP() << environment.status();

  int exit_code;
  const nlohmann::json result =
      RunDemoForJson({"--checkpoint", *environment + "/checkpoint"}, &exit_code);
  EXPECT_EQ(exit_code, 0) << result;
  EXPECT_EQ(result.at("checkpoint").at("tensors"), 104);
  EXPECT_GT(result.at("checkpoint").at("bytes"), 90'000'000);
  EXPECT_EQ(result.at("steps").size(), 5);
}

}  // namespace
}  // namespace weight_sync::demo
