// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The engine process raises an error, is killed, or leaves as if all were well, at each point of a
// sync: the trainer hears of it at once, by name, and the next sync of the same synchronizer heals.

#include <signal.h>

#include <string>
#include <tuple>

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
using ::testing::HasSubstr;
using At = EngineFault::At;
using Do = EngineFault::Do;

constexpr int kBuckets = 8;

// Where the fault strikes in the second sync, and what the error must name besides the version.
struct Point {
  const char* name;
  At at;
  int64_t load;
  const char* raised;  // for an error that the engine raises
};
constexpr Point kPoints[] = {
    {"WhenPaused", At::kBegin, 0, "pausing the engine: engine: scripted"},
    {"BeforeBucket1", At::kLoad, 0, "bucket 0: loading 't0': scripted"},
    {"BetweenBuckets3And4", At::kLoad, 3, "bucket 3: loading 't3': scripted"},
    {"AfterTheLastBucket", At::kEnd, 0, "engine: scripted"},
    {"AtVerification", At::kDigests, 0, "engine: scripted"},
    {"AtFinish", At::kFinish, 0, "engine: scripted"},
    {"AtResume", At::kResume, 0, "engine: scripted"},
};

EngineFault Fault(const Point& point, Do action) {
  EngineFault fault;
  fault.update = 1;
  fault.at = point.at;
  fault.load = point.load;
  fault.action = action;
  fault.text = "scripted: out of memory";
  return fault;
}

class EngineFailsTest : public ProcessTest, public testing::WithParamInterface<Point> {
 protected:
  // One whole sync, a step, and the sync that must fail at once.
  absl::Status FailingSync(Trainer& trainer) {
    ExpectWholeSync(trainer);
    trainer.Step();
    const absl::Time start = absl::Now();
    const absl::Status status = trainer.synchronizer().SyncWeights().status();
    EXPECT_LT(absl::Now() - start, kAtOnce) << status;
    EXPECT_TRUE(trainer.synchronizer().is_stale());
    EXPECT_THAT(status.message(), HasSubstr("sync of version 1: "));
    EXPECT_EQ(trainer.policy().offloads_after, trainer.policy().offloads_before);
    return status;
  }

  void ExpectLostAndHealedByARestart(Do action, const std::string& end) {
    StartEngine(SmallTensors(kBuckets), {Fault(GetParam(), action)});
    auto trainer = StartTrainer(SmallTensors(kBuckets));
    const pid_t first = engine_->process().pid();
    const std::string incarnation = trainer->State()->incarnation;
    EXPECT_THAT(FailingSync(*trainer),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr(absl::StrCat("engine (pid ", first, ") died"))));
    EXPECT_EQ(ReapEngine(), end);

    StartEngine(SmallTensors(kBuckets));
    EXPECT_THAT(trainer->Ask(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("without a synced version")));
    EXPECT_NE(trainer->State()->incarnation, incarnation);
    EXPECT_TRUE(trainer->synchronizer().is_stale());
    ExpectWholeSync(*trainer);
  }
};

TEST_P(EngineFailsTest, AnErrorThatItRaisesIsTheTrainersErrorAndTheNextSyncHeals) {
  StartEngine(SmallTensors(kBuckets), {Fault(GetParam(), Do::kFail)});
  auto trainer = StartTrainer(SmallTensors(kBuckets));
  const base::Digest128 before = AnswerDigest(trainer->policy().parameters());
  EXPECT_THAT(FailingSync(*trainer),
              StatusIs(absl::StatusCode::kInternal, HasSubstr(GetParam().raised)));
  if (GetParam().at == At::kBegin) {
    // No byte was sent: it answers its old version.
    const auto answer = trainer->Ask();
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, 0);
    EXPECT_EQ(answer->weights, before);
  } else if (GetParam().at == At::kResume) {
    // Published whole, and paused.
    EXPECT_THAT(trainer->Ask(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("paused")));
    EXPECT_FALSE(trainer->State()->dirty);
  } else {
    ExpectDirty(*trainer);
  }
  ExpectWholeSync(*trainer);
}

TEST_P(EngineFailsTest, ItsDeathBySigkillIsSeenAtOnceAndARestartHeals) {
  ExpectLostAndHealedByARestart(Do::kKill, "killed by signal 9");
}

TEST_P(EngineFailsTest, ItsExitWithSuccessIsSeenAtOnceAndARestartHeals) {
  ExpectLostAndHealedByARestart(Do::kExit, "exited with 0");
}

INSTANTIATE_TEST_SUITE_P(At, EngineFailsTest, testing::ValuesIn(kPoints),
                         [](const auto& info) { return info.param.name; });

using EngineGoneTest = ProcessTest;

TEST_F(EngineGoneTest, KilledBetweenSyncsAndRestartedItIsSyncedWhole) {
  StartEngine(SmallTensors(kBuckets));
  auto trainer = StartTrainer(SmallTensors(kBuckets));
  ExpectWholeSync(*trainer);
  engine_->process().Kill(SIGKILL);
  EXPECT_EQ(ReapEngine(), "killed by signal 9");
  StartEngine(SmallTensors(kBuckets));
  EXPECT_THAT(trainer->Ask(), StatusIs(absl::StatusCode::kFailedPrecondition));
  trainer->Step();
  ExpectWholeSync(*trainer);
}

TEST_F(EngineGoneTest, KilledBetweenSyncsAndNotRestartedTheSyncEndsAtTheConnectTimeout) {
  StartEngine(SmallTensors(kBuckets));
  SynchronizerOptions options = SmallRing(Endpoint());
  options.connect_timeout = absl::Seconds(1);
  Trainer trainer({SmallTensors(kBuckets), options});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
  engine_->process().Kill(SIGKILL);
  ReapEngine();
  trainer.Step();
  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(absl::StrCat("no engine answers at ", Endpoint()))));
  EXPECT_LT(absl::Now() - start, options.connect_timeout + kAtOnce);
  EXPECT_TRUE(trainer.synchronizer().is_stale());
  StartEngine(SmallTensors(kBuckets));
  ExpectWholeSync(trainer);
}

TEST_F(EngineGoneTest, ARestartWithOtherTensorsIsRefusedByName) {
  StartEngine(SmallTensors(kBuckets));
  auto trainer = StartTrainer(SmallTensors(kBuckets));
  ExpectWholeSync(*trainer);
  engine_->process().Kill(SIGKILL);
  ReapEngine();
  StartEngine(SmallTensors(kBuckets + 1));
  trainer->Step();
  EXPECT_THAT(trainer->synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only at the engine: t8")));
  EXPECT_TRUE(trainer->synchronizer().is_stale());
}

}  // namespace
}  // namespace weight_sync::fakes
