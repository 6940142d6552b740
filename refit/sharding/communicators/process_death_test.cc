// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Four trainer processes, one of which dies or hangs.

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/rank_processes.h"

namespace weight_sync::refit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RankProcesses;
using ::testing::StartsWith;

constexpr int kSize = 4;
constexpr int64_t kMessage = 1 << 20;
constexpr absl::Duration kLong = absl::Minutes(2);
constexpr absl::Duration kAtOnce = absl::Seconds(30);  // did not wait for a deadline

using Side = RankProcesses::Side;

// A rank's process says its errors in one line.
void Say(Side& side, const absl::Status& status) { side.Say(status.ToString()); }

absl::Status Gather(
    Communicator& rank, int64_t tag, const base::CancelScope& scope,
    const std::function<void()>& while_writing = [] {}) {
  const std::vector<int64_t> sizes = {0, kMessage, kMessage, kMessage};
  return rank.Gather(
      tag, sizes,
      [&](absl::Span<std::byte> message) {
        while_writing();
        std::memset(message.data(), static_cast<int>(rank.rank() + tag), message.size());
      },
      [&](int from, absl::Span<const std::byte> message) {
        EXPECT_EQ(message.front(), static_cast<std::byte>(from + tag));
        EXPECT_EQ(message.back(), static_cast<std::byte>(from + tag));
      },
      scope);
}

absl::Status GoodRound(Communicator& rank, int64_t tag) {
  const base::CancelScope scope(base::Deadline::After(kLong));
  absl::Status status = rank.BeginRound(tag, absl::OkStatus(), scope);
  for (int64_t message = 0; status.ok() && message < 5; ++message) {
    status = Gather(rank, message, scope);
  }
  return status.ok() ? rank.EndRound(absl::OkStatus(), scope) : status;
}

class RanksTest : public ::testing::TestWithParam<RankProcesses::Over> {};
INSTANTIATE_TEST_SUITE_P(All, RanksTest,
                         ::testing::Values(RankProcesses::Over::kHost, RankProcesses::Over::kTcp),
                         [](const auto& info) { return testing::OverName(info.param); });

TEST_P(RanksTest, FourProcessesGather) {
  RankProcesses ranks(kSize, GetParam(), [](Communicator& rank, Side& side) {
    for (int64_t round = 0; round < 5; ++round) Say(side, GoodRound(rank, round));
  });
  for (int r = 0; r < kSize; ++r) {
    for (int round = 0; round < 5; ++round) EXPECT_EQ(ranks[r].Hear(), "OK");
  }
  ranks.ExpectCleanEnd();
}

// Rank `victim` stops in the middle of a Gather: of its first, where its memory may yet have a
// name, or of a later one. Each other rank says what comes of that round, and of the next.
void StopInTheMiddle(Communicator& rank, Side& side, int victim, int64_t good_rounds) {
  for (int64_t round = 0; round < good_rounds; ++round) EXPECT_TRUE(GoodRound(rank, round).ok());
  const base::CancelScope scope(base::Deadline::After(kLong));
  absl::Status status = rank.BeginRound(100, absl::OkStatus(), scope);
  for (int64_t message = 0; status.ok() && message < 5; ++message) {
    status = Gather(rank, message, scope, [&] {
      if (rank.rank() != victim || message != good_rounds) return;
      side.Say("in the middle");
      side.WaitForRelease();
    });
  }
  if (status.ok()) status = rank.EndRound(absl::OkStatus(), scope);
  Say(side, status);
  Say(side, rank.BeginRound(101, absl::OkStatus(), scope));
  side.WaitForRelease();
}

TEST_P(RanksTest, ARankThatIsKilledInTheMiddleOfAGatherIsNamedAtOnceOnAllOthers) {
  for (const int victim : {1, 2, 3}) {
    for (const int64_t good_rounds : {0, 2}) {
      SCOPED_TRACE(absl::StrCat("rank ", victim, " after ", good_rounds, " rounds"));
      RankProcesses ranks(kSize, GetParam(), [&](Communicator& rank, Side& side) {
        StopInTheMiddle(rank, side, victim, good_rounds);
      });
      ASSERT_EQ(ranks[victim].Hear(), "in the middle");
      const absl::Time killed = absl::Now();
      ranks[victim].Kill();
      for (int other = 0; other < kSize; ++other) {
        if (other == victim) continue;
        for (int twice = 0; twice < 2; ++twice) {
          EXPECT_THAT(ranks[other].Hear(),
                      StartsWith(absl::StrCat("UNAVAILABLE: rank ", victim, " died")));
        }
      }
      EXPECT_LT(absl::Now() - killed, kAtOnce);
      ranks.ExpectCleanEnd(victim);
    }
  }
}

TEST_P(RanksTest, ARank0ThatIsKilledIsNamedAtOnceOnAllOthers) {
  RankProcesses ranks(kSize, GetParam(), [&](Communicator& rank, Side& side) {
    EXPECT_TRUE(GoodRound(rank, 1).ok());
    if (rank.rank() == 0) {
      side.Say("between rounds");
      side.WaitForRelease();
    }
    Say(side, GoodRound(rank, 2));
  });
  ASSERT_EQ(ranks[0].Hear(), "between rounds");
  const absl::Time killed = absl::Now();
  ranks[0].Kill();
  for (int other = 1; other < kSize; ++other) {
    EXPECT_THAT(ranks[other].Hear(), StartsWith("UNAVAILABLE: rank 0 died"));
  }
  EXPECT_LT(absl::Now() - killed, kAtOnce);
  ranks.ExpectCleanEnd(0);
}

TEST_P(RanksTest, ARankThatHangsIsNamedAtTheDeadlineAndMayComeBack) {
  constexpr int kVictim = 2;
  RankProcesses ranks(kSize, GetParam(), [&](Communicator& rank, Side& side) {
    EXPECT_TRUE(GoodRound(rank, 1).ok());
    // Rank 0 is the one that waits for it.
    const base::CancelScope scope(
        base::Deadline::After(rank.rank() == 0 ? absl::Milliseconds(300) : kLong));
    absl::Status status = rank.BeginRound(2, absl::OkStatus(), scope);
    if (status.ok()) {
      status = Gather(rank, 7, scope, [&] {
        if (rank.rank() != kVictim) return;
        side.Say("stopping");
        ::raise(SIGSTOP);
      });
    }
    if (status.ok()) status = rank.EndRound(absl::OkStatus(), scope);
    Say(side, status);
    Say(side, GoodRound(rank, 3));
  });
  EXPECT_EQ(ranks[kVictim].Hear(), "stopping");
  for (const int other : {0, 1, 3}) {
    EXPECT_THAT(ranks[other].Hear(),
                AllOf(StartsWith("DEADLINE_EXCEEDED"), HasSubstr("Gather(tag 7)"),
                      HasSubstr("waiting for rank 2: no end within 300ms")));
  }
  ASSERT_EQ(::kill(ranks[kVictim].pid(), SIGCONT), 0);
  EXPECT_THAT(ranks[kVictim].Hear(), StartsWith("DEADLINE_EXCEEDED: rank 0: "));
  for (int r = 0; r < kSize; ++r) EXPECT_EQ(ranks[r].Hear(), "OK");
  ranks.ExpectCleanEnd();
}

TEST_P(RanksTest, ADeathIsSeenAlsoWhereAForkedChildHoldsTheConnection) {
  if (GetParam() == RankProcesses::Over::kTcp)
    GTEST_SKIP() << "another machine's processes cannot be seen";
  RankProcesses ranks(kSize, GetParam(), [&](Communicator& rank, Side& side) {
    EXPECT_TRUE(GoodRound(rank, 1).ok());
    if (rank.rank() == 3) {
      const pid_t child = ::fork();
      ABSL_CHECK(child >= 0);
      if (child == 0) {
        side.WaitForRelease();
        ::_exit(0);
      }
      side.Say("forked");
      side.WaitForRelease();
    }
    Say(side, GoodRound(rank, 2));
    side.WaitForRelease();
  });
  EXPECT_EQ(ranks[3].Hear(), "forked");
  const absl::Time killed = absl::Now();
  ranks[3].KillOnly();
  for (int other = 0; other < 3; ++other) {
    EXPECT_THAT(ranks[other].Hear(), StartsWith("UNAVAILABLE: rank 3 died (its process ended)"));
  }
  EXPECT_LT(absl::Now() - killed, kAtOnce);
  ranks[3].Release();
  ranks[3].Reap();
  ranks.ExpectCleanEnd(3);
}

}  // namespace
}  // namespace weight_sync::refit
