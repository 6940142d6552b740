// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/call_gate.h"

#include <thread>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;
using State = CallGate::State;

auto Refused(const char* why) {
  return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why));
}

class CallGateTest : public ::testing::Test {
 protected:
  CallGate gate_;
  base::CancelScope scope_{base::Deadline::After(absl::Minutes(1))};
};

TEST_F(CallGateTest, CallsHaveTheirOrder) {
  EXPECT_THAT(gate_.Enter(State::kReady, "Sync", &scope_), Refused("Sync before Init"));
  ASSERT_THAT(gate_.Enter(State::kNew, "Init", &scope_), IsOk());
  gate_.Leave(State::kNew);  // it failed
  ASSERT_THAT(gate_.Enter(State::kNew, "Init", &scope_), IsOk());
  gate_.Leave(State::kReady);
  EXPECT_THAT(gate_.Enter(State::kNew, "Init", &scope_), Refused("Init was called before"));
  for (int sync = 0; sync < 2; ++sync) {
    ASSERT_THAT(gate_.Enter(State::kReady, "Sync", &scope_), IsOk());
    gate_.Leave(State::kReady);
  }
}

TEST_F(CallGateTest, OneCallRunsAtATime) {
  ASSERT_THAT(gate_.Enter(State::kNew, "Init", &scope_), IsOk());
  EXPECT_THAT(gate_.Enter(State::kNew, "Init", &scope_), Refused("while another call runs"));
  EXPECT_THAT(gate_.Enter(State::kReady, "Sync", &scope_), Refused("while another call runs"));
}

TEST_F(CallGateTest, ShutDownCancelsTheCallThatRunsAndWaitsForItsEnd) {
  ASSERT_THAT(gate_.Enter(State::kNew, "Init", &scope_), IsOk());
  absl::Notification ended;
  std::thread other([&] {
    gate_.ShutDown();
    EXPECT_TRUE(ended.HasBeenNotified());
  });
  while (!scope_.cancelled()) std::this_thread::yield();
  EXPECT_THAT(scope_.status(), StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down")));
  ended.Notify();
  gate_.Leave(State::kReady);
  other.join();
  EXPECT_THAT(gate_.Enter(State::kReady, "Sync", &scope_), Refused("Sync after Shutdown"));
  gate_.ShutDown();
}

}  // namespace
}  // namespace weight_sync
