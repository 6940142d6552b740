// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Live models of torch and tunix through libweight_sync.so. The cases are in torch_peer.py,
// sharded_torch_peer.py and jax_peer.py, which this runs in those programs' environments:
// `tools/peers/setup torch tunix`.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/peers/peer_environment.h"
#include "tools/peers/tiny_checkpoint.h"

namespace weight_sync {
namespace {

// Runs all cases of a program, each of which says "ok".
void RunCases(const std::string& environment, const std::string& program) {
  const auto found = peers::FindPeerEnvironment(environment);
  if (!found.ok()) GTEST_SKIP() << found.status();
  const absl::StatusOr<std::string> checkpoints = peers::TinyCheckpoint("all", /*seed=*/3);
  if (absl::IsNotFound(checkpoints.status())) GTEST_SKIP() << checkpoints.status();
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
  const auto result =
      base::RunProgram({"/usr/bin/env", "PYTHONPATH=weight_sync/c_api/python:refit/maps/peers",
                        *found + "/bin/python", "weight_sync/c_api/python/" + program,
                        "weight_sync/c_api/libweight_sync.so", *checkpoints});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  // Not even where Python only prints and goes on, as in a destructor.
  EXPECT_THAT(result.output, ::testing::Not(::testing::HasSubstr("Traceback")));
  EXPECT_THAT(result.output, ::testing::ContainsRegex("\nRan [1-9][0-9]* tests in .*\n\nOK\n"));
}

TEST(LiveArraysPeerTest, TorchParametersGoInAndHfTensorsComeOut) {
  RunCases("torch", "torch_peer.py");
}

TEST(LiveArraysPeerTest, ShardedTorchParametersGoInAndHfTensorsComeOut) {
  RunCases("torch", "sharded_torch_peer.py");
}

TEST(LiveArraysPeerTest, JaxArraysGoInAndHfTensorsComeOut) { RunCases("tunix", "jax_peer.py"); }

}  // namespace
}  // namespace weight_sync
