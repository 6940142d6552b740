// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/cancel_scope.h"

#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

Deadline Far() { return Deadline::After(absl::Minutes(5)); }

bool Readable(int fd, int timeout_ms) {
  pollfd poll_fd{fd, POLLIN, 0};
  return ::poll(&poll_fd, 1, timeout_ms) == 1 && (poll_fd.revents & POLLIN) != 0;
}

TEST(CancelScopeTest, IsFineUntilCancelled) {
  const CancelScope scope(Far());
  EXPECT_FALSE(scope.cancelled());
  EXPECT_THAT(scope.status(), IsOk());
  EXPECT_THAT(scope.Check("waiting"), IsOk());
  EXPECT_FALSE(Readable(scope.fd(), 0));
}

TEST(CancelScopeTest, FirstCauseWins) {
  CancelScope scope(Far());
  scope.Cancel(absl::UnavailableError("the engine died"));
  scope.Cancel(absl::InternalError("a later one"));
  EXPECT_TRUE(scope.cancelled());
  EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kUnavailable, "the engine died"));
  EXPECT_THAT(scope.Check("waiting"), StatusIs(absl::StatusCode::kUnavailable, "the engine died"));
}

TEST(CancelScopeTest, PastDeadlineSaysWhatWasWaitedFor) {
  const CancelScope scope(Deadline::After(absl::ZeroDuration()));
  EXPECT_FALSE(scope.cancelled());
  EXPECT_THAT(scope.status(), IsOk());
  EXPECT_THAT(scope.Check("waiting for a slot"),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("waiting for a slot")));
}

TEST(CancelScopeTest, CauseComesBeforeThePastDeadline) {
  CancelScope scope(Deadline::After(absl::ZeroDuration()));
  scope.Cancel(absl::AbortedError("the cause"));
  EXPECT_THAT(scope.Check("waiting"), StatusIs(absl::StatusCode::kAborted, "the cause"));
}

TEST(CancelScopeTest, DescriptorStaysReadableOnceCancelled) {
  CancelScope scope(Far());
  scope.Cancel(absl::AbortedError("stop"));
  EXPECT_TRUE(Readable(scope.fd(), 0));
  EXPECT_TRUE(Readable(scope.fd(), 0));
}

TEST(CancelScopeTest, CancellationEndsAPollOfAnotherThread) {
  CancelScope scope(Far());
  absl::Status seen;
  std::thread waiter([&] {
    EXPECT_TRUE(Readable(scope.fd(), 60'000));
    seen = scope.Check("polling");
  });
  scope.Cancel(absl::AbortedError("stop"));
  waiter.join();
  EXPECT_THAT(seen, StatusIs(absl::StatusCode::kAborted, "stop"));
}

TEST(CancelScopeTest, RacingThreadsAllSeeOneCauseOnceTheirCancelReturned) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    CancelScope scope(Far());
    std::vector<std::string> seen(kThreads);
    auto* barrier = new absl::Barrier(kThreads);  // deleted by the thread that leaves it last
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&scope, &seen, barrier, t] {
        if (barrier->Block()) delete barrier;
        scope.Cancel(absl::AbortedError(absl::StrCat("thread ", t)));
        EXPECT_TRUE(scope.cancelled());
        EXPECT_TRUE(Readable(scope.fd(), 0));
        seen[static_cast<size_t>(t)] = std::string(scope.Check("racing").message());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& message : seen) EXPECT_EQ(message, scope.status().message());
    EXPECT_THAT(seen[0], HasSubstr("thread "));
  }
}

TEST(CancelScopeTest, ANarrowerScopeEndsWithItsOuterOne) {
  CancelScope outer(Far());
  const CancelScope narrower(outer, absl::Hours(1));
  EXPECT_FALSE(narrower.cancelled());
  EXPECT_FALSE(Readable(narrower.fd(), 0));
  outer.Cancel(absl::AbortedError("enough"));
  EXPECT_TRUE(narrower.cancelled());
  EXPECT_TRUE(Readable(narrower.fd(), 0));
  EXPECT_EQ(narrower.status(), absl::AbortedError("enough"));
  EXPECT_EQ(narrower.Check("anything"), absl::AbortedError("enough"));
}

TEST(CancelScopeTest, ANarrowerScopeHasTheEarlierOfTheTwoDeadlines) {
  CancelScope outer(Far());
  const CancelScope narrower(outer, absl::ZeroDuration());
  EXPECT_THAT(narrower.Check("a quick thing"), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(outer.Check("a slow thing"), IsOk());
  CancelScope expired(Deadline::After(absl::ZeroDuration()));
  EXPECT_TRUE(CancelScope(expired, absl::Hours(1)).deadline().expired());
}

TEST(CancelScopeDeathTest, NeedsAnError) {
  CancelScope scope(Far());
  EXPECT_DEATH(scope.Cancel(absl::OkStatus()), "cancelled with an error");
}

TEST(CancelScopeDeathTest, ANarrowerScopeIsNotCancelledByItself) {
  CancelScope outer(Far());
  CancelScope narrower(outer, absl::Hours(1));
  EXPECT_DEATH(narrower.Cancel(absl::AbortedError("enough")), "with its outer one");
}

}  // namespace
}  // namespace weight_sync::base
