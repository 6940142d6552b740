// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The whole product in one process: trainer and engine as two sets of threads over one socket.

#include <memory>
#include <string>

#include "absl/status/status_matchers.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_host.h"
#include "fakes/seeded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;

class EndToEndTest : public ::testing::Test {
 protected:
  const base::testing::SocketFolder folder_;
  const std::string endpoint_ = folder_.endpoint();
};

TEST_F(EndToEndTest, EverySyncLeavesTheEngineEqual) {
  auto info = refit::RefitInfo::Create({{"a", {300, 70}, refit::DType::kBF16},
                                        {"empty", {0, 7}, refit::DType::kF32},
                                        {"b", {5}, refit::DType::kF32},
                                        {"c", {1000, 1000}, refit::DType::kBF16}});
  ASSERT_THAT(info, IsOk());
  auto host = EngineHost::Start(endpoint_, *info, {}, {});
  ASSERT_THAT(host, IsOk());
  auto policy = SeededPolicy::Create(*info, 7);
  ASSERT_THAT(policy, IsOk());
  native::NativeGeneration generation(endpoint_);
  SynchronizerOptions options;
  options.endpoint = endpoint_;
  options.ring_slot_bytes = 64 << 10;
  options.deep_verification_every = 1;
  options.sync_timeout = absl::Seconds(20);
  auto synchronizer = CreateWeightSynchronizer(options, policy->get(), &generation);
  ASSERT_THAT(synchronizer, IsOk());
  ASSERT_THAT((*synchronizer)->InitCommunicator(), IsOk());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE((*synchronizer)->is_stale());
    auto report = (*synchronizer)->SyncWeights();
    ASSERT_THAT(report, IsOk());
    EXPECT_FALSE((*synchronizer)->is_stale());
    EXPECT_EQ(report->verification, Verification::kEqual);
    EXPECT_EQ(report->version, i);
    auto answer = (*host)->engine().Answer();
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, i);
    EXPECT_EQ(answer->weights, AnswerDigest((*policy)->parameters()));
    (*policy)->Step();
    (*synchronizer)->MarkStale();
  }
  EXPECT_THAT((*synchronizer)->Shutdown(), IsOk());
}

}  // namespace
}  // namespace weight_sync::fakes
