// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The engine process stops (SIGSTOP) at each point of a sync: it is alive, so only a deadline ends
// the wait. When it goes on, its late replies are nobody's, and the next sync of the same
// synchronizer heals.

#include <signal.h>

#include <string>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using At = EngineFault::At;

constexpr absl::Duration kSyncTimeout = absl::Seconds(1);
constexpr absl::Duration kCleanupTimeout = absl::Milliseconds(100);
// How long the end of a connection waits for an engine that does not answer.
constexpr absl::Duration kBye = absl::Seconds(1);

struct Point {
  const char* name;
  At at;
  int64_t load;
  const char* waited_for;
};
constexpr Point kPoints[] = {
    {"WhenPaused", At::kBegin, 0, "engine.begin"},
    {"BeforeBucket1", At::kLoad, 0, "bucket 4 of 8: engine (pid "},
    {"BetweenBuckets3And4", At::kLoad, 3, "bucket 7 of 8: engine (pid "},
    {"AfterTheLastBucket", At::kEnd, 0, "ipc.commit"},
    {"AtFinish", At::kFinish, 0, "engine.finish"},
    {"AtResume", At::kResume, 0, "engine.resume"},
};

class EngineStopsTest : public ProcessTest, public testing::WithParamInterface<Point> {};

TEST_P(EngineStopsTest, TheSyncEndsAtItsTimeoutAndTheNextOneHeals) {
  EngineFault fault;
  fault.update = 1;
  fault.at = GetParam().at;
  fault.load = GetParam().load;
  fault.action = EngineFault::Do::kStop;
  StartEngine(SmallTensors(8), {fault});
  SynchronizerOptions options = SmallRing(Endpoint());
  options.sync_timeout = kSyncTimeout;
  options.cleanup_timeout = kCleanupTimeout;
  Trainer trainer({SmallTensors(8), options});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
  const base::Digest128 before = AnswerDigest(trainer.policy().parameters());
  trainer.Step();

  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("sync of version 1"), HasSubstr(GetParam().waited_for),
                             HasSubstr("no end within 1s"))));
  EXPECT_LT(absl::Now() - start, kSyncTimeout + kCleanupTimeout + kBye + kAtOnce);
  EXPECT_TRUE(trainer.synchronizer().is_stale());
  EXPECT_EQ(trainer.policy().offloads_after, trainer.policy().offloads_before);

  AwaitStopped(engine_->process().pid());
  engine_->process().Kill(SIGCONT);
  const auto answer = trainer.Ask();
  if (answer.ok()) {
    // Where no byte had been sent, or all were published: it obeys the resume that came late.
    EXPECT_EQ(answer->version, GetParam().at == At::kBegin ? 0 : 1);
    EXPECT_EQ(answer->weights,
              answer->version == 0 ? before : AnswerDigest(trainer.policy().parameters()));
  } else {
    EXPECT_NE(GetParam().at, At::kResume);
  }
  ExpectWholeSync(trainer);
}

INSTANTIATE_TEST_SUITE_P(At, EngineStopsTest, testing::ValuesIn(kPoints),
                         [](const auto& info) { return info.param.name; });

using EngineStoppedTest = ProcessTest;

TEST_F(EngineStoppedTest, ConnectingEndsAtItsTimeoutAndWorksLater) {
  StartEngine(SmallTensors(8));
  engine_->process().Kill(SIGSTOP);
  AwaitStopped(engine_->process().pid());
  SynchronizerOptions options = SmallRing(Endpoint());
  options.connect_timeout = absl::Seconds(1);
  Trainer trainer({SmallTensors(8), options});
  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(absl::StrCat("no engine answers at ", Endpoint()))));
  EXPECT_LT(absl::Now() - start, options.connect_timeout + kAtOnce);
  EXPECT_TRUE(LeftNoSharedMemory(::getpid()));
  engine_->process().Kill(SIGCONT);
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
}

}  // namespace
}  // namespace weight_sync::fakes
