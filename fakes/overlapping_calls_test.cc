// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Calls at the wrong time: two syncs at once, calls before InitCommunicator and after Shutdown,
// Shutdown during a sync, two synchronizers on one engine.

#include <signal.h>

#include <memory>
#include <thread>

#include "absl/status/status_matchers.h"
#include "absl/time/clock.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

using OverlappingCallsTest = ProcessTest;

TEST_F(OverlappingCallsTest, ASecondSyncIsRefusedAndTheFirstGoesOn) {
  StartEngine(SmallTensors(8));
  std::unique_ptr<Trainer> trainer;
  absl::Status second, init;
  trainer = StartTrainer(SmallTensors(8), {{/*sync=*/-1, /*bucket=*/3, LinkFault::Do::kCall, [&] {
                                              std::thread([&] {
                                                second =
                                                    trainer->synchronizer().SyncWeights().status();
                                                init = trainer->synchronizer().InitCommunicator();
                                              }).join();
                                            }}});
  ExpectWholeSync(*trainer);
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kFailedPrecondition,
                               "SyncWeights while another call runs"));
  EXPECT_THAT(init, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(OverlappingCallsTest, AMarkDuringASyncLeavesTheEngineStale) {
  StartEngine(SmallTensors(8));
  std::unique_ptr<Trainer> trainer;
  trainer = StartTrainer(SmallTensors(8), {{/*sync=*/0, /*bucket=*/3, LinkFault::Do::kCall,
                                            [&] { trainer->synchronizer().MarkStale(); }}});
  EXPECT_THAT(trainer->synchronizer().SyncWeights(), IsOk());
  EXPECT_TRUE(trainer->synchronizer().is_stale());
  EXPECT_EQ(trainer->Ask()->version, 0);
  ExpectWholeSync(*trainer);
  EXPECT_EQ(trainer->Ask()->version, 1);
}

TEST_F(OverlappingCallsTest, CallsOutOfOrderAreRefusedByName) {
  StartEngine(SmallTensors(8));
  Trainer trainer({SmallTensors(8), SmallRing(Endpoint())});
  EXPECT_THAT(
      trainer.synchronizer().SyncWeights(),
      StatusIs(absl::StatusCode::kFailedPrecondition, "SyncWeights before InitCommunicator"));
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  EXPECT_THAT(
      trainer.synchronizer().InitCommunicator(),
      StatusIs(absl::StatusCode::kFailedPrecondition, "InitCommunicator was called before"));
  ExpectWholeSync(trainer);
}

TEST_F(OverlappingCallsTest, AfterShutdownEverythingIsRefusedAndTheEngineServesOn) {
  StartEngine(SmallTensors(8));
  auto trainer = StartTrainer(SmallTensors(8));
  ExpectWholeSync(*trainer);
  EXPECT_THAT(trainer->synchronizer().Shutdown(), IsOk());
  EXPECT_THAT(trainer->synchronizer().Shutdown(), IsOk());
  trainer->synchronizer().MarkStale();
  EXPECT_THAT(trainer->synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "SyncWeights after Shutdown"));
  EXPECT_THAT(trainer->synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "InitCommunicator after Shutdown"));
  EXPECT_EQ(RingMappings(::getpid()), 0);
  EXPECT_EQ(trainer->Ask()->version, 0);

  auto next = StartTrainer(SmallTensors(8));
  ExpectWholeSync(*next);
}

TEST_F(OverlappingCallsTest, ShutdownDuringASyncEndsItAtOnceAndTheEngineIsDirty) {
  EngineFault stop;
  stop.update = 1;
  stop.load = 3;
  stop.action = EngineFault::Do::kStop;
  StartEngine(SmallTensors(8), {stop});
  SynchronizerOptions options = SmallRing(Endpoint());
  options.cleanup_timeout = absl::Milliseconds(100);
  Trainer trainer({SmallTensors(8), options});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
  trainer.Step();
  absl::Status sync;
  std::thread syncing([&] { sync = trainer.synchronizer().SyncWeights().status(); });
  AwaitStopped(engine_->process().pid());
  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().Shutdown(), IsOk());
  // What was left to do: the clean-up, and the goodbye to an engine that does not answer.
  EXPECT_LT(absl::Now() - start, options.cleanup_timeout + absl::Seconds(1) + kAtOnce);
  syncing.join();
  EXPECT_THAT(sync,
              StatusIs(absl::StatusCode::kAborted, HasSubstr("the synchronizer was shut down")));
  EXPECT_EQ(RingMappings(::getpid()), 0);
  engine_->process().Kill(SIGCONT);

  auto next = StartTrainer(SmallTensors(8));
  ExpectDirty(*next);
  ExpectWholeSync(*next);
}

TEST_F(OverlappingCallsTest, ShutdownWhileNobodyAnswersEndsTheConnecting) {
  Trainer trainer({SmallTensors(8), SmallRing(Endpoint())});
  absl::Status init;
  std::thread connecting([&] { init = trainer.synchronizer().InitCommunicator(); });
  // Its ring is there before it connects.
  EXPECT_TRUE(WaitUntil([] { return RingMappings(::getpid()) > 0; }));
  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().Shutdown(), IsOk());
  EXPECT_LT(absl::Now() - start, kAtOnce);
  connecting.join();
  EXPECT_THAT(init,
              StatusIs(absl::StatusCode::kAborted, HasSubstr("the synchronizer was shut down")));
}

TEST_F(OverlappingCallsTest, ASynchronizerWhoseEngineTookAnotherHelloConnectsAnew) {
  StartEngine(SmallTensors(8));
  auto first = StartTrainer(SmallTensors(8));
  ExpectWholeSync(*first);
  // Of this same process, so they are let in: one is refused for its tensors after the engine let
  // go, the other takes the first one's place with a ring of its own.
  Trainer refused({SmallTensors(9), SmallRing(Endpoint())});
  EXPECT_THAT(refused.synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  first->Step();
  EXPECT_THAT(first->synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("say hello anew")));
  EXPECT_EQ(first->Ask()->version, 0);  // no byte was sent: it answers as before
  ExpectWholeSync(*first);

  Trainer second({SmallTensors(8), SmallRing(Endpoint())});
  EXPECT_THAT(second.synchronizer().InitCommunicator(), IsOk());
  first->Step();
  EXPECT_THAT(first->synchronizer().SyncWeights(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("say hello anew")));
  ExpectWholeSync(*first);
}

}  // namespace
}  // namespace weight_sync::fakes
