// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where `tools/peers/setup NAME` has built an environment. A test without its environment skips
// itself, with the words that say how to build it. The test's data must have //tools/peers:setup,
// which this library brings along, and its env_inherit PEER_ENVIRONMENT_VARIABLES of peers.bzl.
// Thread-safe.
//
//   auto vllm = FindPeerEnvironment("vllm");
//   if (!vllm.ok()) GTEST_SKIP() << vllm.status();
//   base::RunProgram({*vllm + "/bin/python", "-c", "import vllm"});

#ifndef WEIGHT_SYNC_TOOLS_PEERS_PEER_ENVIRONMENT_H_
#define WEIGHT_SYNC_TOOLS_PEERS_PEER_ENVIRONMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::peers {

// The environment's folder. NotFound, with what setup says, where there is none.
absl::StatusOr<std::string> FindPeerEnvironment(absl::string_view name);

}  // namespace weight_sync::peers

#endif  // WEIGHT_SYNC_TOOLS_PEERS_PEER_ENVIRONMENT_H_
