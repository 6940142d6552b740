// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tiny checkpoints of every model family for peer tests: what tools/peers/make_tiny writes.
//
//   auto checkpoint = TinyCheckpoint("qwen3", /*seed=*/1);
//   if (absl::IsNotFound(checkpoint.status())) GTEST_SKIP() << checkpoint.status();

#ifndef WEIGHT_SYNC_TOOLS_PEERS_TINY_CHECKPOINT_H_
#define WEIGHT_SYNC_TOOLS_PEERS_TINY_CHECKPOINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weight_sync::peers {

// Writes the checkpoint below TEST_TMPDIR unless this test has done so before, and returns its
// directory. The family "all" gives a directory with one of every family, named after it. `options`
// are further ones of make_tiny. NotFound without the environment "torch"; Internal, with what
// make_tiny said, if it failed.
absl::StatusOr<std::string> TinyCheckpoint(const std::string& family, int seed,
                                           const std::vector<std::string>& options = {});

}  // namespace weight_sync::peers

#endif  // WEIGHT_SYNC_TOOLS_PEERS_TINY_CHECKPOINT_H_
