// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/deadline.h"

#include <poll.h>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeadlineTest, ExpiresAtOnceForNoTimeAndForNegativeTime) {
  for (const absl::Duration timeout :
       {absl::ZeroDuration(), absl::Seconds(-1), -absl::InfiniteDuration()}) {
    const Deadline deadline = Deadline::After(timeout);
    EXPECT_TRUE(deadline.expired());
    EXPECT_EQ(deadline.remaining(), absl::ZeroDuration());
    EXPECT_EQ(deadline.remaining_ms(), 0);
  }
}

TEST(DeadlineTest, IsNeverFartherThanAYear) {
  for (const absl::Duration timeout : {absl::Hours(24 * 366), absl::InfiniteDuration()}) {
    const Deadline deadline = Deadline::After(timeout);
    EXPECT_FALSE(deadline.expired());
    EXPECT_LE(deadline.remaining(), absl::Hours(24 * 365));
    EXPECT_GT(deadline.remaining(), absl::Hours(24 * 364));
    EXPECT_EQ(deadline.remaining_ms(), 1 << 30);
  }
}

TEST(DeadlineTest, RemainingTimeFallsAndStaysWithinTheTimeout) {
  const Deadline deadline = Deadline::After(absl::Minutes(10));
  const absl::Duration before = deadline.remaining();
  const absl::Duration after = deadline.remaining();
  EXPECT_LE(before, absl::Minutes(10));
  EXPECT_LE(after, before);
  EXPECT_GT(after, absl::Minutes(5));
  EXPECT_LE(deadline.remaining_ms(), 600'000);
}

TEST(DeadlineTest, MillisecondsAreRoundedUpSoThatOnePollEndsTheWait) {
  for (const int microseconds : {1, 300, 1500, 2999}) {
    const Deadline deadline = Deadline::After(absl::Microseconds(microseconds));
    for (;;) {
      const int ms = deadline.remaining_ms();
      if (ms == 0) break;
      ::poll(nullptr, 0, ms);
      EXPECT_TRUE(deadline.expired());
    }
    EXPECT_TRUE(deadline.expired());
  }
}

TEST(DeadlineTest, EarlierTakesTheEarlierInEitherOrder) {
  const Deadline soon = Deadline::After(absl::Seconds(1));
  const Deadline late = Deadline::After(absl::Hours(1));
  EXPECT_LE(Deadline::Earlier(soon, late).remaining(), absl::Seconds(1));
  EXPECT_LE(Deadline::Earlier(late, soon).remaining(), absl::Seconds(1));
}

TEST(DeadlineTest, ExceededSaysWhatWasWaitedForAndHowLong) {
  EXPECT_THAT(Deadline::After(absl::Seconds(90)).Exceeded("waiting for the engine's hello"),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("waiting for the engine's hello"), HasSubstr("1m30s"))));
}

}  // namespace
}  // namespace weight_sync::base
