// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/communicator_conformance.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

using Ranks = std::vector<std::unique_ptr<Communicator>>;
using Statuses = std::vector<absl::Status>;

constexpr absl::Duration kLong = absl::Minutes(2);     // nothing that succeeds comes near it
constexpr absl::Duration kAtOnce = absl::Seconds(30);  // did not wait for a deadline
constexpr absl::Duration kShort = absl::Milliseconds(200);

std::unique_ptr<base::CancelScope> Scope(absl::Duration timeout = kLong) {
  return std::make_unique<base::CancelScope>(base::Deadline::After(timeout));
}

// A thread for each rank that there is.
Statuses OnAllRanks(const Ranks& ranks, const std::function<absl::Status(Communicator&)>& body) {
  Statuses statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back(
        [&, r] { statuses[r] = ranks[r] == nullptr ? absl::OkStatus() : body(*ranks[r]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

std::byte Pattern(int rank, int64_t tag, size_t i) {
  return static_cast<std::byte>((i * 31 + i / 251) ^
                                static_cast<size_t>(int64_t{53} * rank + tag * 97));
}

void Fill(absl::Span<std::byte> message, int rank, int64_t tag) {
  for (size_t i = 0; i < message.size(); ++i) message[i] = Pattern(rank, tag, i);
}

bool Filled(absl::Span<const std::byte> message, int rank, int64_t tag) {
  for (size_t i = 0; i < message.size(); ++i) {
    if (message[i] != Pattern(rank, tag, i)) return false;
  }
  return true;
}

// A gather whose messages say whose and which they are. On rank 0, all that was promised came,
// once.
absl::Status Gather(Communicator& rank, int64_t tag, const std::vector<int64_t>& sizes,
                    const base::CancelScope& scope) {
  std::vector<int> reads(sizes.size());
  int writes = 0;
  const absl::Status status = rank.Gather(
      tag, sizes,
      [&](absl::Span<std::byte> message) {
        ++writes;
        EXPECT_EQ(message.size(), sizes[rank.rank()]);
        Fill(message, rank.rank(), tag);
      },
      [&](int from, absl::Span<const std::byte> message) {
        ++reads[from];
        EXPECT_EQ(message.size(), sizes[from]);
        EXPECT_TRUE(Filled(message, from, tag)) << "of rank " << from << ", tag " << tag;
      },
      scope);
  if (!status.ok()) return status;
  EXPECT_EQ(writes, rank.rank() != 0 && sizes[rank.rank()] > 0 ? 1 : 0);
  for (size_t r = 0; r < sizes.size(); ++r) {
    EXPECT_EQ(reads[r], rank.rank() == 0 && sizes[r] > 0 ? 1 : 0) << "of rank " << r;
  }
  return status;
}

// Rank r's message has base + r bytes.
std::vector<int64_t> Sizes(const Communicator& rank, int64_t base) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank.size()));
  for (size_t r = 1; r < sizes.size(); ++r) sizes[r] = base + static_cast<int64_t>(r);
  return sizes;
}

// A whole round that goes well.
absl::Status GoodRound(Communicator& rank, int64_t tag) {
  const auto scope = Scope();
  WS_RETURN_IF_ERROR(rank.BeginRound(tag, absl::OkStatus(), *scope));
  for (int64_t message = 0; message < 4; ++message) {
    WS_RETURN_IF_ERROR(Gather(rank, message, Sizes(rank, 700 * message), *scope));
  }
  WS_ASSIGN_OR_RETURN(const int64_t value,
                      rank.Broadcast(9, rank.rank() == 0 ? 100 + tag : 0, *scope));
  EXPECT_EQ(value, 100 + tag);
  return rank.EndRound(absl::OkStatus(), *scope);
}

void ExpectGoodRound(const Ranks& ranks, int64_t tag) {
  EXPECT_THAT(OnAllRanks(ranks, [&](Communicator& rank) { return GoodRound(rank, tag); }),
              Each(IsOk()));
}

std::string RankName(size_t rank) { return absl::StrCat("rank ", rank); }

TEST_P(CommunicatorConformanceTest, EveryRankKnowsItsPlace) {
  for (const int size : {1, 2, 3, 5}) {
    const Ranks ranks = GetParam().make(size);
    ASSERT_EQ(ranks.size(), size);
    for (int r = 0; r < size; ++r) {
      EXPECT_EQ(ranks[r]->rank(), r);
      EXPECT_EQ(ranks[r]->size(), size);
    }
  }
}

TEST_P(CommunicatorConformanceTest, MessagesOfAllSizesArriveCompleteFromEveryRank) {
  for (const int size : {1, 2, 3, 5}) {
    const Ranks ranks = GetParam().make(size);
    EXPECT_THAT(OnAllRanks(ranks,
                           [](Communicator& rank) -> absl::Status {
                             const auto scope = Scope();
                             for (int64_t round = 0; round < 2; ++round) {
                               WS_RETURN_IF_ERROR(rank.BeginRound(round, absl::OkStatus(), *scope));
                               int64_t tag = -2;
                               for (const int64_t base :
                                    {0, 1, 4095, 4096, 100'003, 7, 700'001, 60'000, 1'500'000}) {
                                 WS_RETURN_IF_ERROR(Gather(rank, tag++, Sizes(rank, base), *scope));
                               }
                               WS_RETURN_IF_ERROR(rank.EndRound(absl::OkStatus(), *scope));
                             }
                             return absl::OkStatus();
                           }),
                Each(IsOk()))
        << size;
  }
}

TEST_P(CommunicatorConformanceTest, ARankWithNothingToGiveTakesPart) {
  const Ranks ranks = GetParam().make(4);
  const std::vector<std::vector<int64_t>> gathers = {{0, 0, 0, 0}, {0, 5, 0, 0}, {0, 0, 0, 70'000},
                                                     {0, 3, 1, 0}, {0, 0, 9, 9}, {0, 0, 0, 0}};
  EXPECT_THAT(
      OnAllRanks(ranks,
                 [&](Communicator& rank) -> absl::Status {
                   const auto scope = Scope();
                   WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                   for (size_t g = 0; g < gathers.size(); ++g) {
                     WS_RETURN_IF_ERROR(Gather(rank, static_cast<int64_t>(g), gathers[g], *scope));
                   }
                   return rank.EndRound(absl::OkStatus(), *scope);
                 }),
      Each(IsOk()));
}

TEST_P(CommunicatorConformanceTest, ARankNeedsToKnowOnlyItsOwnSize) {
  const Ranks ranks = GetParam().make(3);
  EXPECT_THAT(OnAllRanks(ranks,
                         [&](Communicator& rank) -> absl::Status {
                           const auto scope = Scope();
                           std::vector<int64_t> sizes = {0, 50, 60};
                           if (rank.rank() == 1) sizes[2] = 0;
                           if (rank.rank() == 2) sizes[1] = 1000;
                           WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                           WS_RETURN_IF_ERROR(Gather(rank, 1, sizes, *scope));
                           return rank.EndRound(absl::OkStatus(), *scope);
                         }),
              Each(IsOk()));
}

TEST_P(CommunicatorConformanceTest, ARoundOfNothingAndManyRoundsWork) {
  const Ranks ranks = GetParam().make(3);
  EXPECT_THAT(OnAllRanks(ranks,
                         [](Communicator& rank) -> absl::Status {
                           const auto scope = Scope();
                           for (int64_t round = 0; round < 200; ++round) {
                             WS_RETURN_IF_ERROR(rank.BeginRound(7, absl::OkStatus(), *scope));
                             WS_RETURN_IF_ERROR(rank.EndRound(absl::OkStatus(), *scope));
                           }
                           return absl::OkStatus();
                         }),
              Each(IsOk()));
}

TEST_P(CommunicatorConformanceTest, ARankMayBeAheadOfRank0) {
  const Ranks ranks = GetParam().make(3);
  absl::Barrier* const ahead = new absl::Barrier(3);
  EXPECT_THAT(OnAllRanks(ranks,
                         [&](Communicator& rank) -> absl::Status {
                           const auto scope = Scope();
                           WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                           // Rank 0 gathers when the others have come through two messages.
                           if (rank.rank() == 0 && ahead->Block()) delete ahead;
                           for (int64_t tag = 0; tag < 2; ++tag) {
                             WS_RETURN_IF_ERROR(Gather(rank, tag, Sizes(rank, 2000), *scope));
                           }
                           if (rank.rank() != 0 && ahead->Block()) delete ahead;
                           return rank.EndRound(absl::OkStatus(), *scope);
                         }),
              Each(IsOk()));
}

TEST_P(CommunicatorConformanceTest, ARankWithNothingToGiveMayBeFarAhead) {
  const Ranks ranks = GetParam().make(2);
  absl::Notification ahead;
  constexpr int64_t kGathers = 100;
  EXPECT_THAT(OnAllRanks(ranks,
                         [&](Communicator& rank) -> absl::Status {
                           const auto scope = Scope();
                           WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                           if (rank.rank() == 0) ahead.WaitForNotification();
                           for (int64_t tag = 0; tag < kGathers; ++tag) {
                             WS_RETURN_IF_ERROR(Gather(rank, tag, {0, 0}, *scope));
                           }
                           if (rank.rank() == 1) ahead.Notify();
                           return rank.EndRound(absl::OkStatus(), *scope);
                         }),
              Each(IsOk()));
}

TEST_P(CommunicatorConformanceTest, ARankThatIsTooFarAheadWaitsForRank0) {
  const Ranks ranks = GetParam().make(2);
  absl::Notification over;
  const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
    const auto scope = Scope();
    WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
    const std::vector<int64_t> sizes = {0, 24 << 20};  // more than a system buffers
    if (rank.rank() == 0) {
      over.WaitForNotification();
      for (int64_t tag = 0;; ++tag) {
        WS_RETURN_IF_ERROR(rank.Gather(
            tag, sizes, [](absl::Span<std::byte>) {},
            [&](int, absl::Span<const std::byte> message) {
              EXPECT_TRUE(Filled(message.first(9), 1, tag));
            },
            *scope));
      }
    }
    const auto short_scope = Scope(kShort);
    absl::Status status;
    for (int64_t tag = 0; status.ok() && tag < 10'000; ++tag) {
      status = rank.Gather(
          tag, sizes, [&](absl::Span<std::byte> message) { Fill(message.first(9), 1, tag); },
          [](int, absl::Span<const std::byte>) {}, *short_scope);
    }
    over.Notify();
    return status;
  });
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 0")));
  // What rank 1 has run into is known also where its message is still under way.
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                    testing::StartsWith("rank 1: Gather(tag ")));
  ExpectGoodRound(ranks, 2);
}

TEST_P(CommunicatorConformanceTest, EveryRankGetsTheRootsValue) {
  for (const int size : {1, 2, 5}) {
    const Ranks ranks = GetParam().make(size);
    EXPECT_THAT(OnAllRanks(ranks,
                           [](Communicator& rank) -> absl::Status {
                             const auto scope = Scope();
                             WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                             for (const int64_t value : {int64_t{0}, int64_t{-7}, INT64_MAX}) {
                               EXPECT_THAT(rank.Broadcast(4, rank.rank() == 0 ? value : 5, *scope),
                                           IsOkAndHolds(value));
                             }
                             return rank.EndRound(absl::OkStatus(), *scope);
                           }),
                Each(IsOk()));
  }
}

TEST_P(CommunicatorConformanceTest, Rank0NeedNotWaitForTheOthersToBroadcast) {
  const Ranks ranks = GetParam().make(3);
  absl::Notification ahead;
  EXPECT_THAT(OnAllRanks(ranks,
                         [&](Communicator& rank) -> absl::Status {
                           const auto scope = Scope();
                           WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
                           if (rank.rank() != 0) ahead.WaitForNotification();
                           for (int64_t tag = 0; tag < 50; ++tag) {
                             EXPECT_THAT(rank.Broadcast(tag, tag * 3, *scope),
                                         IsOkAndHolds(tag * 3));
                           }
                           if (rank.rank() == 0) ahead.Notify();
                           WS_RETURN_IF_ERROR(Gather(rank, 1, Sizes(rank, 10), *scope));
                           return rank.EndRound(absl::OkStatus(), *scope);
                         }),
              Each(IsOk()));
}

// BeginRound, three gathers with a broadcast in between, EndRound: six calls. `at` replaces one
// call of a rank, if it returns a status.
using At = std::function<std::optional<absl::Status>(Communicator& rank, int call,
                                                     const base::CancelScope& scope)>;
constexpr int kCalls = 6;

absl::Status SixCalls(Communicator& rank, int64_t round, const base::CancelScope& scope,
                      const At& at) {
  for (int call = 0; call < kCalls; ++call) {
    absl::Status status;
    if (std::optional<absl::Status> other = at(rank, call, scope); other.has_value()) {
      status = *std::move(other);
    } else if (call == 0) {
      status = rank.BeginRound(round, absl::OkStatus(), scope);
    } else if (call == 3) {
      status = rank.Broadcast(call, 1, scope).status();
    } else if (call == kCalls - 1) {
      status = rank.EndRound(absl::OkStatus(), scope);
    } else {
      status = Gather(rank, call, Sizes(rank, call == 2 ? 80'000 : 100), scope);
    }
    WS_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// Runs it for each rank as the one, and each call as the place, where something goes wrong. A good
// round follows each time, and nobody waits for a deadline.
template <typename Wrong, typename Check>
void AtEachRankAndCall(const CommunicatorConformanceParams& params, Wrong wrong, Check check) {
  for (const int size : {2, 4}) {
    const Ranks ranks = params.make(size);
    int64_t round = 0;
    for (int r = 0; r < size; ++r) {
      for (int call = 0; call < kCalls; ++call) {
        SCOPED_TRACE(absl::StrCat("rank ", r, " of ", size, " at its call ", call));
        const absl::Time start = absl::Now();
        const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
          const auto scope = Scope();
          const At at = [&](Communicator& at_rank, int at_call,
                            const base::CancelScope& at_scope) -> std::optional<absl::Status> {
            if (at_rank.rank() != r || at_call != call) return std::nullopt;
            return wrong(at_rank, at_call, round, at_scope);
          };
          return SixCalls(rank, round, *scope, at);
        });
        check(statuses, r, call);
        EXPECT_LT(absl::Now() - start, kAtOnce);
        ExpectGoodRound(ranks, round);
        ++round;
      }
    }
  }
}

TEST_P(CommunicatorConformanceTest, AnErrorOfAnyRankAtAnyCallReachesAllRanks) {
  AtEachRankAndCall(
      GetParam(),
      [](Communicator& rank, int call, int64_t round, const base::CancelScope& scope) {
        const absl::Status mine = absl::ResourceExhaustedError("no more \"memory\"");
        return call == 0 ? rank.BeginRound(round, mine, scope) : rank.EndRound(mine, scope);
      },
      [](const Statuses& statuses, size_t r, int) {
        for (size_t other = 0; other < statuses.size(); ++other) {
          const std::string text =
              other == r ? "no more \"memory\"" : absl::StrCat("rank ", r, ": no more \"memory\"");
          EXPECT_EQ(statuses[other], absl::ResourceExhaustedError(text)) << "on rank " << other;
        }
      });
}

TEST_P(CommunicatorConformanceTest, ACancellationOfAnyRankAtAnyCallReachesAllRanks) {
  AtEachRankAndCall(
      GetParam(),
      [](Communicator& rank, int call, int64_t round, const base::CancelScope&) -> absl::Status {
        base::CancelScope cancelled(base::Deadline::After(kLong));
        cancelled.Cancel(absl::CancelledError("the job is asked to stop"));
        if (call == 0) return rank.BeginRound(round, absl::OkStatus(), cancelled);
        if (call == 3) return rank.Broadcast(call, 1, cancelled).status();
        if (call == kCalls - 1) return rank.EndRound(absl::OkStatus(), cancelled);
        return Gather(rank, call, Sizes(rank, 100), cancelled);
      },
      [](const Statuses& statuses, size_t r, int) {
        for (size_t other = 0; other < statuses.size(); ++other) {
          EXPECT_THAT(statuses[other], StatusIs(absl::StatusCode::kCancelled,
                                                HasSubstr("the job is asked to stop")));
          if (other != r) {
            EXPECT_THAT(statuses[other].message(), HasSubstr(RankName(r)));
          }
        }
      });
}

TEST_P(CommunicatorConformanceTest, AnotherTagIsFailedPreconditionOnAllRanksWithBothNames) {
  AtEachRankAndCall(
      GetParam(),
      [](Communicator& rank, int call, int64_t, const base::CancelScope& scope) -> absl::Status {
        if (call == 0) return rank.BeginRound(7777, absl::OkStatus(), scope);
        if (call == 3) return rank.Broadcast(7777, 1, scope).status();
        const absl::Status status = Gather(rank, 7777, Sizes(rank, 100), scope);
        // The end has no tag; a gather more comes before it, and the rank may be ahead with that.
        return status.ok() && call == kCalls - 1 ? rank.EndRound(status, scope) : status;
      },
      [](const Statuses& statuses, size_t r, int call) {
        const std::string right = call == 0            ? "BeginRound"
                                  : call == kCalls - 1 ? "EndRound"
                                  : call == 3          ? "Broadcast(tag 3)"
                                                       : absl::StrCat("Gather(tag ", call);
        // Rank 0's tag differs from all of the others.
        EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr(r == 0 ? "rank 0" : RankName(r)),
                                                  HasSubstr("(tag 7777)"), HasSubstr(right)))));
      });
}

TEST_P(CommunicatorConformanceTest, ASkippedCallIsFailedPreconditionOnAllRanksWithBothNames) {
  AtEachRankAndCall(
      GetParam(),
      [](Communicator& rank, int call, int64_t round,
         const base::CancelScope& scope) -> absl::Status {
        // Before the first call there is nothing to skip, so the round ends before it began; the
        // last is skipped by the next round's begin.
        if (call == 0) return rank.EndRound(absl::OkStatus(), scope);
        if (call == kCalls - 1) return rank.BeginRound(round + 1, absl::OkStatus(), scope);
        return absl::OkStatus();
      },
      [](const Statuses& statuses, size_t r, int call) {
        const std::vector<std::string> names = {"BeginRound",    "Gather(tag 1)",
                                                "Gather(tag 2)", "Broadcast(tag 3)",
                                                "Gather(tag 4)", "EndRound"};
        const std::string instead = call == 0            ? "EndRound"
                                    : call == kCalls - 1 ? "BeginRound"
                                                         : names[static_cast<size_t>(call) + 1];
        EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr(RankName(r)), HasSubstr(instead),
                                                  HasSubstr(names[static_cast<size_t>(call)])))));
      });
}

TEST_P(CommunicatorConformanceTest, AnotherSizeIsFailedPreconditionOnAllRanksWithBothNumbers) {
  const Ranks ranks = GetParam().make(3);
  struct Case {
    int64_t of_rank_1;
    int64_t of_rank_0;
  };
  int64_t round = 0;
  for (const Case& c : {Case{16, 17}, Case{0, 9}, Case{9, 0}, Case{3'000'000, 8}}) {
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
      const auto scope = Scope();
      WS_RETURN_IF_ERROR(rank.BeginRound(round, absl::OkStatus(), *scope));
      WS_RETURN_IF_ERROR(
          Gather(rank, 5, {0, rank.rank() == 1 ? c.of_rank_1 : c.of_rank_0, 40}, *scope));
      return rank.EndRound(absl::OkStatus(), *scope);
    });
    EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kFailedPrecondition,
                                        AllOf(HasSubstr("rank 1"), HasSubstr("Gather(tag 5)"),
                                              HasSubstr(absl::StrCat(c.of_rank_1, " bytes")),
                                              HasSubstr(absl::StrCat("for ", c.of_rank_0))))));
    ExpectGoodRound(ranks, round++);
  }
}

TEST_P(CommunicatorConformanceTest, SizesThatAreNoneAreInvalidAndReachAllRanks) {
  for (const int size : {1, 3}) {
    const Ranks ranks = GetParam().make(size);
    const std::vector<std::vector<int64_t>> wrong = {{}, {0, 1, 2, 3}, {1, 1, 1}, {0, -1, 2}};
    int64_t round = 0;
    for (int r = 0; r < size; ++r) {
      for (const std::vector<int64_t>& sizes : wrong) {
        const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
          const auto scope = Scope();
          WS_RETURN_IF_ERROR(rank.BeginRound(round, absl::OkStatus(), *scope));
          if (rank.rank() == r) WS_RETURN_IF_ERROR(Gather(rank, 1, sizes, *scope));
          return rank.EndRound(absl::OkStatus(), *scope);
        });
        EXPECT_THAT(statuses,
                    Each(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Gather(tag 1)"))));
        ExpectGoodRound(ranks, round++);
      }
    }
  }
}

TEST_P(CommunicatorConformanceTest, AfterAFailureOnlyBeginRoundIsLeft) {
  const Ranks ranks = GetParam().make(2);
  const absl::Status failed = absl::DataLossError("the first failure");
  OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
    const auto scope = Scope();
    EXPECT_THAT(rank.BeginRound(1, absl::OkStatus(), *scope), IsOk());
    const absl::Status status = rank.EndRound(rank.rank() == 1 ? failed : absl::OkStatus(), *scope);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(Gather(rank, 1, {0, 1}, *scope), status);
    EXPECT_EQ(rank.Broadcast(1, 1, *scope).status(), status);
    EXPECT_EQ(rank.EndRound(absl::OkStatus(), *scope), status);
    EXPECT_EQ(rank.EndRound(absl::InternalError("a later one"), *scope), status);
    return status;
  });
  ExpectGoodRound(ranks, 2);
}

TEST_P(CommunicatorConformanceTest, AnErrorIsToldWithoutWaitingForAnyone) {
  for (const size_t r : {0, 1, 2}) {
    const Ranks ranks = GetParam().make(3);
    // The others are not even there, and the scope has ended.
    base::CancelScope ended(base::Deadline::After(absl::ZeroDuration()));
    EXPECT_EQ(ranks[r]->BeginRound(1, absl::InternalError("mine"), ended),
              absl::InternalError("mine"));
    for (size_t other = 0; other < 3; ++other) {
      if (other == r) continue;
      if (r != 0 && other != 0) continue;  // rank 0 has not yet had it to pass on
      EXPECT_THAT(ranks[other]->BeginRound(1, absl::OkStatus(), *Scope()),
                  StatusIs(absl::StatusCode::kInternal, absl::StrCat("rank ", r, ": mine")));
    }
    for (size_t other = 1; r != 0 && other < 3; ++other) {
      if (other == r) continue;
      EXPECT_THAT(ranks[other]->BeginRound(1, absl::OkStatus(), *Scope()),
                  StatusIs(absl::StatusCode::kInternal, absl::StrCat("rank ", r, ": mine")));
    }
    ExpectGoodRound(ranks, 2);
  }
}

TEST_P(CommunicatorConformanceTest, WhatIsLeftOfAFailedRoundIsDropped) {
  const Ranks ranks = GetParam().make(4);
  for (int64_t round = 0; round < 8; ++round) {
    // Each rank has come to another point when rank 0 fails, with messages under way.
    absl::Barrier* const there = new absl::Barrier(4);
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
      const auto scope = Scope();
      absl::Status status = rank.BeginRound(round, absl::OkStatus(), *scope);
      if (rank.rank() != 0) {
        for (int64_t tag = 0; status.ok() && tag < rank.rank() - 1; ++tag) {
          status = Gather(rank, 100 + tag, Sizes(rank, 3000 * tag), *scope);
        }
      }
      if (there->Block()) delete there;
      WS_RETURN_IF_ERROR(status);
      if (rank.rank() == 0) return rank.EndRound(absl::AbortedError("the engine left"), *scope);
      if (round % 2 == 0) WS_RETURN_IF_ERROR(Gather(rank, 555, Sizes(rank, 5'000'000), *scope));
      return rank.EndRound(absl::OkStatus(), *scope);
    });
    EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kAborted, HasSubstr("the engine left"))));
    ExpectGoodRound(ranks, round);
  }
}

TEST_P(CommunicatorConformanceTest, ARankThatNeverBeginsIsNamedOnAllRanks) {
  for (int r = 1; r < 4; ++r) {
    const Ranks ranks = GetParam().make(4);
    // Only rank 0 has no patience; from it the others know.
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
      if (rank.rank() == r) return absl::OkStatus();
      return rank.BeginRound(3, absl::OkStatus(), *Scope(rank.rank() == 0 ? kShort : kLong));
    });
    for (int other = 0; other < 4; ++other) {
      if (other == r) continue;
      EXPECT_THAT(statuses[other],
                  StatusIs(absl::StatusCode::kDeadlineExceeded,
                           HasSubstr(absl::StrCat("BeginRound(tag 3): waiting for rank ", r))));
    }
    // The round that it missed has failed for it too; then all meet again.
    EXPECT_THAT(ranks[r]->BeginRound(3, absl::OkStatus(), *Scope()),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(RankName(r))));
    ExpectGoodRound(ranks, 4);
  }
}

TEST_P(CommunicatorConformanceTest, AnyRankWhoseDeadlineIsFirstNamesWhoIsMissing) {
  const Ranks ranks = GetParam().make(4);
  const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
    if (rank.rank() == 2) return absl::OkStatus();
    return rank.BeginRound(3, absl::OkStatus(),
                           *Scope(rank.rank() == 1 ? absl::Seconds(2) : kLong));
  });
  for (const size_t other : {0, 1, 3}) {
    EXPECT_THAT(statuses[other], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("BeginRound(tag 3): waiting for rank 2")));
  }
  EXPECT_THAT(statuses[3].message(), HasSubstr("rank 1: "));
}

TEST_P(CommunicatorConformanceTest, SeveralMissingRanksAreAllNamed) {
  const Ranks ranks = GetParam().make(5);
  EXPECT_THAT(ranks[0]->BeginRound(3, absl::OkStatus(), *Scope(kShort)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("ranks 1, 2, 3, 4")));
}

TEST_P(CommunicatorConformanceTest, ARankThatStopsInTheMiddleIsNamedOnAllRanks) {
  for (const bool at_end : {false, true}) {
    for (int r = 1; r < 3; ++r) {
      const Ranks ranks = GetParam().make(3);
      const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
        const auto scope = Scope();
        WS_RETURN_IF_ERROR(rank.BeginRound(3, absl::OkStatus(), *scope));
        const auto short_scope = Scope(rank.rank() == 0 ? kShort : kLong);
        if (!at_end && rank.rank() == r) return absl::OkStatus();
        WS_RETURN_IF_ERROR(Gather(rank, 6, Sizes(rank, 100), *short_scope));
        if (rank.rank() == r) return absl::OkStatus();
        return rank.EndRound(absl::OkStatus(), *short_scope);
      });
      for (int other = 0; other < 3; ++other) {
        if (other == r) continue;
        EXPECT_THAT(statuses[other],
                    StatusIs(absl::StatusCode::kDeadlineExceeded,
                             AllOf(HasSubstr(at_end ? "EndRound" : "Gather(tag 6)"),
                                   HasSubstr(absl::StrCat("waiting for rank ", r)))));
      }
      EXPECT_THAT(ranks[r]->EndRound(absl::OkStatus(), *Scope()),
                  StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 0: ")));
      ExpectGoodRound(ranks, 4);
    }
  }
}

TEST_P(CommunicatorConformanceTest, ARank0ThatStopsIsNamed) {
  const Ranks ranks = GetParam().make(3);
  for (const int at : {0, 1, 2}) {
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
      if (at == 0 && rank.rank() == 0) return absl::OkStatus();
      if (at > 0) WS_RETURN_IF_ERROR(rank.BeginRound(at, absl::OkStatus(), *Scope()));
      if (rank.rank() == 0) return absl::OkStatus();
      const auto scope = Scope(rank.rank() == 1 ? kShort : 5 * kShort);
      if (at == 0) return rank.BeginRound(at, absl::OkStatus(), *scope);
      if (at == 1) return rank.Broadcast(8, 0, *scope).status();
      return rank.EndRound(absl::OkStatus(), *scope);
    });
    EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      HasSubstr("waiting for rank 0: no end within")));
    EXPECT_THAT(statuses[2], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                      HasSubstr("waiting for rank 0: no end within")));
    const auto scope = Scope();
    const absl::Status late = at == 0 ? ranks[0]->BeginRound(at, absl::OkStatus(), *scope)
                                      : ranks[0]->EndRound(absl::OkStatus(), *scope);
    EXPECT_THAT(late, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank ")));
    ExpectGoodRound(ranks, 9);
  }
}

TEST_P(CommunicatorConformanceTest, ACancellationEndsAWaitAtOnceOnAllRanks) {
  for (size_t r = 0; r < 3; ++r) {
    const Ranks ranks = GetParam().make(4);
    // All but rank 3 wait, for it.
    std::vector<std::unique_ptr<base::CancelScope>> scopes;
    for (int i = 0; i < 3; ++i) scopes.push_back(Scope());
    const absl::Time start = absl::Now();
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
      if (rank.rank() == 3) {
        scopes[r]->Cancel(absl::AbortedError("the driver has failed"));
        return absl::OkStatus();
      }
      return rank.BeginRound(3, absl::OkStatus(), *scopes[rank.rank()]);
    });
    EXPECT_LT(absl::Now() - start, kAtOnce);
    for (size_t other = 0; other < 3; ++other) {
      EXPECT_EQ(statuses[other],
                absl::AbortedError(
                    absl::StrCat(other == r ? "" : RankName(r) + ": ", "the driver has failed")));
    }
  }
}

// Each rank but `r` runs six calls; that one dies before its call `call`.
void ExpectDeath(const CommunicatorConformanceParams& params, int size, int r, int call) {
  SCOPED_TRACE(absl::StrCat("rank ", r, " of ", size, " dies before its call ", call));
  Ranks ranks = params.make(size);
  const absl::Time start = absl::Now();
  const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
    const At at = [&](Communicator& at_rank, int at_call,
                      const base::CancelScope&) -> std::optional<absl::Status> {
      if (at_rank.rank() != r || at_call != call) return std::nullopt;
      ranks[static_cast<size_t>(r)] = nullptr;
      return absl::AbortedError("dead");
    };
    return SixCalls(rank, 1, *Scope(), at);
  });
  const auto named =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("rank ", r, " died")));
  for (int other = 0; other < size; ++other) {
    if (other != r) {
      EXPECT_THAT(statuses[static_cast<size_t>(other)], named);
    }
  }
  // For good.
  for (int64_t later = 2; later < 4; ++later) {
    const Statuses again =
        OnAllRanks(ranks, [&](Communicator& rank) { return GoodRound(rank, later); });
    for (int other = 0; other < size; ++other) {
      if (other != r) {
        EXPECT_THAT(again[static_cast<size_t>(other)], named);
      }
    }
  }
  EXPECT_LT(absl::Now() - start, kAtOnce);
}

TEST_P(CommunicatorConformanceTest, TheDeathOfAnyRankAtAnyCallIsUnavailableForGood) {
  for (int r = 0; r < 4; ++r) {
    for (int call = 0; call < kCalls; ++call) ExpectDeath(GetParam(), 4, r, call);
  }
  ExpectDeath(GetParam(), 2, 0, 2);
  ExpectDeath(GetParam(), 2, 1, 2);
}

TEST_P(CommunicatorConformanceTest, ADeathIsSeenByRanksThatWaitForAnother) {
  for (int r = 0; r < 3; ++r) {
    Ranks ranks = GetParam().make(4);
    // Rank 3 comes never, rank r leaves.
    const absl::Time start = absl::Now();
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
      if (rank.rank() == 3) return absl::OkStatus();
      if (rank.rank() == r) {
        ranks[static_cast<size_t>(r)] = nullptr;
        return absl::OkStatus();
      }
      return rank.BeginRound(1, absl::OkStatus(), *Scope());
    });
    EXPECT_LT(absl::Now() - start, kAtOnce);
    for (int other = 0; other < 3; ++other) {
      if (other == r) continue;
      EXPECT_THAT(
          statuses[static_cast<size_t>(other)],
          StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("rank ", r, " died"))));
    }
  }
}

TEST_P(CommunicatorConformanceTest, ARankThatSaidWhyBeforeItDiedIsHeard) {
  Ranks ranks = GetParam().make(3);
  const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
    const auto scope = Scope();
    WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
    if (rank.rank() == 2) {
      // Ahead of rank 0, so that its reason comes behind messages.
      WS_RETURN_IF_ERROR(Gather(rank, 0, Sizes(rank, 3000), *scope));
      WS_RETURN_IF_ERROR(Gather(rank, 1, Sizes(rank, 3000), *scope));
      EXPECT_FALSE(rank.EndRound(absl::DataLossError("a broken shard"), *scope).ok());
      ranks[2] = nullptr;
      return absl::OkStatus();
    }
    for (int64_t tag = 0; tag < 2; ++tag) {
      WS_RETURN_IF_ERROR(Gather(rank, tag, Sizes(rank, 3000), *scope));
    }
    return rank.EndRound(absl::OkStatus(), *scope);
  });
  EXPECT_EQ(statuses[0], absl::DataLossError("rank 2: a broken shard"));
  EXPECT_EQ(statuses[1], absl::DataLossError("rank 2: a broken shard"));
  const Statuses later = OnAllRanks(ranks, [](Communicator& rank) { return GoodRound(rank, 2); });
  EXPECT_THAT(later[0], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 2 died")));
  EXPECT_THAT(later[1], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 2 died")));
}

TEST_P(CommunicatorConformanceTest, ARankMayLeaveWhenARoundHasEnded) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    Ranks ranks = GetParam().make(3);
    EXPECT_THAT(OnAllRanks(ranks,
                           [&](Communicator& rank) {
                             const int r = rank.rank();
                             const absl::Status status = GoodRound(rank, 1);
                             ranks[static_cast<size_t>(r)] = nullptr;
                             return status;
                           }),
                Each(IsOk()));
  }
}

// --- Random schedules ----------------------------------------------------------------------------

struct Fault {
  enum Kind { kError, kCancelled, kWrongTag, kWrongSize, kSkip };
  int step;
  Kind kind;
};

struct Schedule {
  int64_t tag = 0;
  // Each step between begin and end: the messages' sizes, or none for a broadcast.
  std::vector<std::vector<int64_t>> steps;
  std::vector<std::optional<Fault>> faults;  // by rank

  bool fails() const {
    return std::any_of(faults.begin(), faults.end(), [](const auto& f) { return f.has_value(); });
  }
};

Schedule RandomSchedule(std::mt19937& random, int size, int64_t tag) {
  Schedule schedule;
  schedule.tag = tag;
  schedule.steps.resize(random() % 7);
  for (std::vector<int64_t>& sizes : schedule.steps) {
    if (random() % 4 == 0) continue;
    sizes.resize(static_cast<size_t>(size));
    for (int r = 1; r < size; ++r) {
      sizes[static_cast<size_t>(r)] =
          random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % (1u << (random() % 19)));
    }
  }
  schedule.faults.resize(static_cast<size_t>(size));
  const int end = static_cast<int>(schedule.steps.size()) + 1;
  for (uint32_t faults = random() % 3; faults > 0; --faults) {
    Fault fault{static_cast<int>(random() % static_cast<uint32_t>(end + 1)),
                static_cast<Fault::Kind>(random() % 5)};
    const bool gathers = fault.step > 0 && fault.step < end &&
                         !schedule.steps[static_cast<size_t>(fault.step - 1)].empty();
    if (fault.kind == Fault::kWrongSize && !gathers) fault.kind = Fault::kError;
    if (fault.step == end && fault.kind != Fault::kCancelled) fault.kind = Fault::kError;
    if (fault.step == 0 && fault.kind == Fault::kSkip) fault.kind = Fault::kCancelled;
    schedule.faults[random() % schedule.faults.size()] = fault;
  }
  return schedule;
}

// What this rank makes of the round.
absl::Status RunSchedule(Communicator& rank, const Schedule& schedule,
                         const base::CancelScope& scope) {
  const std::optional<Fault>& fault = schedule.faults[static_cast<size_t>(rank.rank())];
  const int end = static_cast<int>(schedule.steps.size()) + 1;
  base::CancelScope cancelled(base::Deadline::After(kLong));
  cancelled.Cancel(absl::CancelledError("by the schedule"));
  for (int step = 0; step <= end; ++step) {
    const bool wrong = fault.has_value() && fault->step == step;
    const auto is = [&](Fault::Kind kind) { return wrong && fault->kind == kind; };
    const base::CancelScope& step_scope = is(Fault::kCancelled) ? cancelled : scope;
    const absl::Status mine =
        is(Fault::kError) ? absl::InternalError("by the schedule") : absl::OkStatus();
    const int64_t tag = step + (is(Fault::kWrongTag) ? 1000 : 0);
    absl::Status status;
    if (is(Fault::kSkip)) continue;
    if (step == 0) {
      status = rank.BeginRound(schedule.tag + tag, mine, step_scope);
    } else if (step == end || !mine.ok()) {
      status = rank.EndRound(mine, step_scope);
    } else if (schedule.steps[static_cast<size_t>(step - 1)].empty()) {
      const auto value = rank.Broadcast(tag, schedule.tag * 7 + step, step_scope);
      status = value.status();
      if (value.ok()) {
        EXPECT_EQ(*value, schedule.tag * 7 + step);
      }
    } else {
      std::vector<int64_t> sizes = schedule.steps[static_cast<size_t>(step - 1)];
      if (is(Fault::kWrongSize)) ++sizes[static_cast<size_t>(std::max(1, rank.rank()))];
      status = Gather(rank, tag, sizes, step_scope);
    }
    WS_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

TEST_P(CommunicatorConformanceTest, RandomFailuresFailTheirRoundOnAllRanksAndNoOther) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(seed % 4);
    std::vector<Schedule> rounds;
    for (int64_t tag = 0; tag < 40; ++tag) rounds.push_back(RandomSchedule(random, size, tag));
    const Ranks ranks = GetParam().make(size);
    // Nothing but the rounds themselves holds the ranks together.
    std::vector<Statuses> outcomes(static_cast<size_t>(size));
    OnAllRanks(ranks, [&](Communicator& rank) {
      const auto scope = Scope();
      for (const Schedule& schedule : rounds) {
        outcomes[static_cast<size_t>(rank.rank())].push_back(RunSchedule(rank, schedule, *scope));
      }
      return absl::OkStatus();
    });
    for (int r = 0; r < size; ++r) {
      for (size_t round = 0; round < rounds.size(); ++round) {
        const absl::Status& outcome = outcomes[static_cast<size_t>(r)][round];
        EXPECT_EQ(outcome.ok(), !rounds[round].fails())
            << "rank " << r << " in round " << round << ": " << outcome;
        EXPECT_THAT(outcome, AllOf(Not(StatusIs(absl::StatusCode::kDeadlineExceeded)),
                                   Not(StatusIs(absl::StatusCode::kUnavailable))));
      }
    }
  }
}

TEST_P(CommunicatorConformanceTest, CancelledAtAnyMomentARoundEndsAlikeOnAllOthers) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(seed % 3);
    const Ranks ranks = GetParam().make(size);
    for (int64_t tag = 0; tag < 25; ++tag) {
      Schedule schedule = RandomSchedule(random, size, tag);
      schedule.faults.assign(static_cast<size_t>(size), std::nullopt);
      std::vector<std::unique_ptr<base::CancelScope>> scopes;
      for (int r = 0; r < size; ++r) scopes.push_back(Scope());
      const size_t victim = random() % static_cast<uint32_t>(size);
      const uint32_t moment = random() % 200;
      std::thread canceller([&] {
        for (uint32_t i = 0; i < moment; ++i) std::this_thread::yield();
        scopes[victim]->Cancel(absl::CancelledError("at some moment"));
      });
      const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) {
        return RunSchedule(rank, schedule, *scopes[static_cast<size_t>(rank.rank())]);
      });
      canceller.join();
      bool others_ok = true, others_failed = true;
      for (size_t r = 0; r < ranks.size(); ++r) {
        if (r == victim) continue;
        (statuses[r].ok() ? others_failed : others_ok) = false;
        EXPECT_TRUE(statuses[r].ok() || absl::IsCancelled(statuses[r])) << statuses[r];
      }
      EXPECT_TRUE(others_ok || others_failed) << "seed " << seed << ", round " << tag;
      if (statuses[victim].ok()) {
        EXPECT_TRUE(others_ok);
      }
    }
  }
}

TEST_P(CommunicatorConformanceTest, ADeathAtARandomStepIsUnavailableOnAllOthers) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(seed % 4);
    Ranks ranks = GetParam().make(size);
    Schedule schedule = RandomSchedule(random, size, 1);
    schedule.faults.assign(static_cast<size_t>(size), std::nullopt);
    const size_t victim = random() % static_cast<uint32_t>(size);
    const size_t steps = random() % (schedule.steps.size() + 1);
    const Statuses statuses = OnAllRanks(ranks, [&](Communicator& rank) -> absl::Status {
      const auto scope = Scope();
      if (static_cast<size_t>(rank.rank()) != victim) return RunSchedule(rank, schedule, *scope);
      WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), *scope));
      for (size_t step = 0; step < steps; ++step) {
        const int64_t tag = static_cast<int64_t>(step) + 1;
        const absl::Status status = schedule.steps[step].empty()
                                        ? rank.Broadcast(tag, 7 + tag, *scope).status()
                                        : Gather(rank, tag, schedule.steps[step], *scope);
        WS_RETURN_IF_ERROR(status);
      }
      ranks[victim] = nullptr;
      return absl::OkStatus();
    });
    for (size_t r = 0; r < ranks.size(); ++r) {
      EXPECT_THAT(statuses[r], r == victim
                                   ? ::testing::Matcher<absl::Status>(IsOk())
                                   : StatusIs(absl::StatusCode::kUnavailable,
                                              HasSubstr(absl::StrCat("rank ", victim, " died"))));
    }
  }
}

}  // namespace
}  // namespace weight_sync::refit
