// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/peers/peer_environment.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::peers {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PeerEnvironmentTest, OneThatIsThereIsFoundAndOneThatIsNotSaysHowToBuildIt) {
  const std::string peers = testing::TempDir() + "/peers";
  ASSERT_EQ(::setenv("WEIGHT_SYNC_PEERS", peers.c_str(), 1), 0);
  const absl::Status missing = FindPeerEnvironment("vllm").status();
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound,
                                AllOf(HasSubstr(peers + "/vllm-"),
                                      HasSubstr("build it: tools/peers/setup vllm"))));

  // The folder that the error names, made to look built.
  const std::string message(missing.message());
  const size_t begin = message.find(peers);
  const std::string folder = message.substr(begin, message.find(';') - begin);
  std::filesystem::create_directories(folder + "/bin");
  std::ofstream(folder + "/.complete") << "";
  EXPECT_THAT(FindPeerEnvironment("vllm"), StatusIs(absl::StatusCode::kNotFound));  // no Python
  std::ofstream(folder + "/bin/python") << "";
  ASSERT_EQ(::chmod((folder + "/bin/python").c_str(), 0700), 0);
  EXPECT_THAT(FindPeerEnvironment("vllm"), IsOkAndHolds(folder));
}

TEST(PeerEnvironmentTest, AnUnknownNameIsRefused) {
  EXPECT_THAT(FindPeerEnvironment("vlm"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("knows no environment 'vlm'")));
}

}  // namespace
}  // namespace weight_sync::peers
