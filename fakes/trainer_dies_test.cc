// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The trainer process is killed or stops: the engine is dirty and answers nothing, has freed
// everything of that trainer, and another trainer can sync it. Around the hand-over of the ring,
// while it has a name, nothing stays in /dev/shm.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status_matchers.h"
#include "absl/time/clock.h"
#include "base/local_endpoint.h"
#include "fakes/engine_host.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/ipc/protocol.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kEngineThatDiesAtHello[] = "--engine-dies-at-hello";

std::string Ended(ChildProcess& child) {
  const auto status = child.Wait(base::Deadline::After(kLongTimeout));
  return status.ok() ? DescribeWaitStatus(*status) : status.status().ToString();
}

struct Point {
  const char* name;
  TrainerScript::At at;
  int64_t bucket;
};
constexpr Point kPoints[] = {
    {"AtTheFirstBucket", TrainerScript::At::kBucket, 0},
    {"InTheMiddle", TrainerScript::At::kBucket, 4},
    {"BeforeCommit", TrainerScript::At::kBucket, 7},
    {"AfterCommitBeforeFinish", TrainerScript::At::kFinish, 0},
};

class TrainerDiesTest : public ProcessTest, public testing::WithParamInterface<Point> {
 protected:
  ChildProcess StartTrainerChild(const TrainerScript& script) {
    auto child = StartTrainerProcess(script);
    EXPECT_THAT(child, IsOk());
    RememberChild(child->pid());
    return *std::move(child);
  }
};

TEST_P(TrainerDiesTest, TheEngineIsDirtyHasFreedEverythingAndTakesAnotherTrainer) {
  StartEngine(SmallTensors(8));
  const pid_t engine = engine_->process().pid();
  const int fds = OpenFds(engine);
  TrainerScript script{Endpoint(), SmallTensors(8)};
  script.syncs = 2;
  script.at = GetParam().at;
  script.sync = 1;
  script.bucket = GetParam().bucket;
  script.signal = SIGKILL;
  ChildProcess child = StartTrainerChild(script);
  EXPECT_THAT(child.ReadLine(base::Deadline::After(kLongTimeout)), IsOkAndHolds("connected"));
  EXPECT_THAT(child.ReadLine(base::Deadline::After(kLongTimeout)), IsOkAndHolds("synced 0"));
  EXPECT_EQ(Ended(child), "killed by signal 9");
  EXPECT_TRUE(WaitUntil([engine] { return RingMappings(engine) == 0; }));
  EXPECT_TRUE(WaitUntil([engine, fds] { return OpenFds(engine) <= fds; }))
      << OpenFds(engine) << " open, " << fds << " before";

  Trainer other({SmallTensors(8), SmallRing(Endpoint()), {}, /*seed=*/8});
  ASSERT_THAT(other.synchronizer().InitCommunicator(), IsOk());
  if (GetParam().bucket > 0 || GetParam().at == TrainerScript::At::kFinish) {
    ExpectDirty(other);
  } else {
    // Killed before the first bucket was handed over: paused, with its old version.
    EXPECT_THAT(other.Ask(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("paused")));
  }
  ExpectWholeSync(other);
}

INSTANTIATE_TEST_SUITE_P(At, TrainerDiesTest, testing::ValuesIn(kPoints),
                         [](const auto& info) { return info.param.name; });

using TrainerStopsTest = ProcessTest;

TEST_F(TrainerStopsTest, TheEnginesOwnDeadlineMakesItDirty) {
  // The engine in this process, to look into it while its only client is the stopped trainer.
  auto host = EngineHost::Start(Endpoint(), SmallTensors(8), {}, {});
  ASSERT_THAT(host, IsOk());
  const base::CancelScope scope(base::Deadline::After(kLongTimeout));
  TrainerScript script{Endpoint(), SmallTensors(8)};
  script.at = TrainerScript::At::kBucket;
  script.bucket = 4;
  script.signal = SIGSTOP;
  script.sync_timeout = absl::Seconds(1);
  auto child = StartTrainerProcess(script);
  ASSERT_THAT(child, IsOk());
  RememberChild(child->pid());
  AwaitStopped(child->pid());
  EXPECT_TRUE(WaitUntil([&] { return (*host)->engine().State(scope)->dirty; }));
  EXPECT_THAT((*host)->engine().last_abort(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("bucket 4")));
  EXPECT_THAT((*host)->engine().Answer(), StatusIs(absl::StatusCode::kFailedPrecondition));
  child->Kill(SIGKILL);
  EXPECT_EQ(Ended(*child), "killed by signal 9");
  EXPECT_TRUE(WaitUntil([] { return RingMappings(::getpid()) == 0; }));
  auto trainer = StartTrainer(SmallTensors(8));
  ExpectWholeSync(*trainer);
}

using HandOverTest = ProcessTest;

TEST_F(HandOverTest, ATrainerKilledInItLeavesNoEntryOnceTheEngineHasSeenIt) {
  StartEngine(SmallTensors(8));
  TrainerScript script{Endpoint(), SmallTensors(8)};
  script.at = TrainerScript::At::kHandOver;
  script.signal = SIGKILL;
  auto child = StartTrainerProcess(script);
  ASSERT_THAT(child, IsOk());
  const pid_t pid = child->pid();
  EXPECT_EQ(Ended(*child), "killed by signal 9");
  EXPECT_TRUE(LeftNoSharedMemory(pid));
  const pid_t engine = engine_->process().pid();
  EXPECT_TRUE(WaitUntil([engine] { return RingMappings(engine) == 0; }));
  auto trainer = StartTrainer(SmallTensors(8));
  ExpectWholeSync(*trainer);
}

TEST_F(HandOverTest, WhatBothLeftWhenTheyDiedInItIsSweptAtTheNextStart) {
  StartEngine(SmallTensors(8));
  TrainerScript script{Endpoint(), SmallTensors(8)};
  script.at = TrainerScript::At::kHandOver;
  script.signal = SIGSTOP;
  auto child = StartTrainerProcess(script);
  ASSERT_THAT(child, IsOk());
  const pid_t pid = child->pid();
  const auto ring = child->ReadLine(base::Deadline::After(kLongTimeout));
  ASSERT_THAT(ring, IsOk());
  AwaitStopped(pid);
  const std::string entry = "/dev/shm" + *ring;
  EXPECT_TRUE(std::filesystem::exists(entry));
  engine_->process().Kill(SIGKILL);
  EXPECT_EQ(ReapEngine(), "killed by signal 9");
  EXPECT_TRUE(std::filesystem::exists(entry));
  child->Kill(SIGKILL);
  EXPECT_EQ(Ended(*child), "killed by signal 9");

  StartEngine(SmallTensors(8));
  auto trainer = StartTrainer(SmallTensors(8));
  EXPECT_TRUE(LeftNoSharedMemory(pid));
  ExpectWholeSync(*trainer);
}

TEST_F(HandOverTest, AnEngineKilledInItIsSeenAtOnceAndTheTrainerLeavesNoEntry) {
  auto engine = ChildProcess::Start(kEngineThatDiesAtHello, Endpoint());
  ASSERT_THAT(engine, IsOk());
  ASSERT_THAT(engine->ReadLine(base::Deadline::After(kLongTimeout)), IsOkAndHolds("ready"));
  Trainer trainer({SmallTensors(8), SmallRing(Endpoint())});
  const absl::Time start = absl::Now();
  EXPECT_THAT(trainer.synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("died")));
  EXPECT_LT(absl::Now() - start, kAtOnce);
  EXPECT_TRUE(LeftNoSharedMemory(::getpid()));
  EXPECT_EQ(RingMappings(::getpid()), 0);
  EXPECT_EQ(Ended(*engine), "killed by signal 9");

  StartEngine(SmallTensors(8));
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
}

class DiesAtHello : public wire::RpcService {
 public:
  void Handle(wire::RpcRequest, wire::RpcResponder) override { ::raise(SIGKILL); }
  void PeerGone(const absl::Status&) override {}
};

int RunEngineThatDiesAtHello() {
  DiesAtHello service;
  auto claim = base::LocalEndpoint::Claim(ChildConfig());
  auto server = wire::RpcServer::Start(*std::move(claim), {{ipc::kServicePrefix, &service}});
  ReportLine(server.ok() ? "ready" : server.status().ToString());
  WaitForParent();
  return 0;
}

}  // namespace
}  // namespace weight_sync::fakes

int main(int argc, char** argv) {
  using namespace weight_sync::fakes;
  if (argc == 2 && argv[1] == std::string(kEngineThatDiesAtHello)) {
    return RunEngineThatDiesAtHello();
  }
  if (const std::optional<int> code = MaybeRunChild(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
