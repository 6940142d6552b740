// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/read_guard.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

auto StepOverlapped() {
  return StatusIs(absl::StatusCode::kAborted, HasSubstr("overlapped the sync"));
}

auto StepIsOpen() { return StatusIs(absl::StatusCode::kAborted, HasSubstr("optimizer step")); }

TEST(ReadGuardTest, UnchangedWithoutAStep) {
  StepGate gate;
  {
    StepGate::Step before(gate);
  }
  const absl::StatusOr<ReadGuard> guard = gate.Read();
  ASSERT_THAT(guard, IsOk());
  EXPECT_THAT(guard->Unchanged(), IsOk());
  EXPECT_THAT(guard->Unchanged(), IsOk());
}

TEST(ReadGuardTest, StepDuringAReadIsSeenWhileOpenAndForeverAfter) {
  StepGate gate;
  const absl::StatusOr<ReadGuard> guard = gate.Read();
  ASSERT_THAT(guard, IsOk());
  {
    StepGate::Step step(gate);
    EXPECT_THAT(guard->Unchanged(), StepOverlapped());
  }
  EXPECT_THAT(guard->Unchanged(), StepOverlapped());
  // The next read starts anew, and its guard is another one.
  const absl::StatusOr<ReadGuard> next = gate.Read();
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(next->Unchanged(), IsOk());
  EXPECT_THAT(guard->Unchanged(), StepOverlapped());
}

TEST(ReadGuardTest, ReadDuringAStepIsAborted) {
  StepGate gate;
  {
    StepGate::Step step(gate);
    EXPECT_THAT(gate.Read().status(), StepIsOpen());
  }
  EXPECT_THAT(gate.Read(), IsOk());
}

TEST(ReadGuardTest, NestedStepsAreOneUntilTheLastEnds) {
  StepGate gate;
  const absl::StatusOr<ReadGuard> guard = gate.Read();
  {
    StepGate::Step outer(gate);
    {
      StepGate::Step inner(gate);
    }
    EXPECT_THAT(gate.Read().status(), StepIsOpen());
  }
  EXPECT_THAT(gate.Read(), IsOk());
  EXPECT_THAT(guard->Unchanged(), StepOverlapped());
}

TEST(ReadGuardTest, StepsMayOverlapWithoutNesting) {
  StepGate gate;
  auto first = std::make_unique<StepGate::Step>(gate);
  auto second = std::make_unique<StepGate::Step>(gate);
  first.reset();
  EXPECT_THAT(gate.Read().status(), StepIsOpen());
  second.reset();
  EXPECT_THAT(gate.Read(), IsOk());
}

TEST(ReadGuardTest, ManyGuardsAtOnce) {
  StepGate gate;
  const absl::StatusOr<ReadGuard> a = gate.Read();
  const absl::StatusOr<ReadGuard> b = gate.Read();
  EXPECT_THAT(a->Unchanged(), IsOk());
  EXPECT_THAT(b->Unchanged(), IsOk());
  {
    StepGate::Step step(gate);
  }
  EXPECT_THAT(a->Unchanged(), StepOverlapped());
  EXPECT_THAT(b->Unchanged(), StepOverlapped());
}

TEST(ReadGuardTest, AStepThatWaitsForSyncsFailsNoneAndIsSeenByTheNext) {
  StepGate gate;
  absl::StatusOr<ReadGuard> guard = gate.Read();
  ASSERT_THAT(guard, IsOk());
  EXPECT_TRUE(guard->blocks_trainer());
  std::atomic<bool> stepping{false};
  std::thread trainer([&] {
    const auto step = StepGate::Step::AfterSyncs(gate, base::Deadline::After(absl::Seconds(60)));
    stepping.store(true);
    EXPECT_THAT(step, IsOk());
  });
  EXPECT_THAT(guard->Unchanged(), IsOk());
  EXPECT_FALSE(stepping.load());
  guard = absl::UnknownError("released");
  trainer.join();
  EXPECT_THAT(gate.Read(), IsOk());
}

TEST(ReadGuardTest, AStepThatWaitedTooLongIsNotOpen) {
  StepGate gate;
  const absl::StatusOr<ReadGuard> guard = gate.Read();
  EXPECT_THAT(StepGate::Step::AfterSyncs(gate, base::Deadline::After(absl::ZeroDuration())),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("optimizer step waiting")));
  EXPECT_THAT(guard->Unchanged(), IsOk());
  EXPECT_THAT(gate.Read(), IsOk());
}

TEST(ReadGuardTest, AMovedStepIsOneStep) {
  StepGate gate;
  {
    StepGate::Step step(gate);
    const StepGate::Step moved(std::move(step));
    EXPECT_THAT(gate.Read().status(), StepIsOpen());
  }
  EXPECT_THAT(gate.Read(), IsOk());
}

// What a guard calls unchanged was never two steps' values mixed.
TEST(ReadGuardTest, GuardedReadsOfAWritingThreadAreNeverTorn) {
  StepGate gate;
  std::vector<std::atomic<int64_t>> parameters(64);  // atomic: an overlap is expected here
  std::atomic<bool> done{false};
  std::thread trainer([&] {
    for (int64_t step = 1; !done.load(); ++step) {
      StepGate::Step open(gate);
      for (std::atomic<int64_t>& parameter : parameters) parameter.store(step);
    }
  });
  const absl::Cleanup stop = [&] {
    done.store(true);
    trainer.join();
    EXPECT_THAT(gate.Read(), IsOk());
  };
  int unchanged = 0, refused = 0;
  std::vector<int64_t> copy(parameters.size());
  for (int round = 0; round < 100'000; ++round) {
    const absl::StatusOr<ReadGuard> guard = gate.Read();
    if (!guard.ok()) {
      ++refused;
      continue;
    }
    for (size_t i = 0; i < copy.size(); ++i) copy[i] = parameters[i].load();
    if (!guard->Unchanged().ok()) continue;
    ++unchanged;
    for (const int64_t value : copy) ASSERT_EQ(value, copy[0]);
  }
  RecordProperty("unchanged", unchanged);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace weight_sync::refit
