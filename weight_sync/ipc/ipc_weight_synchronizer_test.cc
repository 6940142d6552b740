// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The synchronizer with an engine in this process, over its real socket and ring.

#include "weight_sync/ipc/ipc_weight_synchronizer.h"

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_host.h"
#include "fakes/faulty_link.h"
#include "fakes/seeded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/ipc/ipc_link.h"

namespace weight_sync::ipc {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::weight_sync::fakes::EngineFault;
using ::weight_sync::fakes::LinkFault;

// A policy and a generation that note the calls of both sides in one order.
class Calls {
 public:
  void Add(std::string call) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> calls_;
};

class NotingPolicy : public Policy {
 public:
  NotingPolicy(fakes::SeededPolicy* policy, Calls* calls) : policy_(policy), calls_(calls) {}
  refit::RefitSource& source() override { return policy_->source(); }
  absl::Status OffloadBeforeRefit() override {
    calls_->Add("offload before");
    if (on_offload) on_offload();
    return policy_->OffloadBeforeRefit();
  }
  absl::Status OffloadAfterRefit() override {
    calls_->Add("offload after");
    return policy_->OffloadAfterRefit();
  }
  std::function<void()> on_offload;

 private:
  fakes::SeededPolicy* const policy_;
  Calls* const calls_;
};

class NotingGeneration : public native::NativeGeneration {
 public:
  NotingGeneration(std::string endpoint, Calls* calls)
      : NativeGeneration(std::move(endpoint)), calls_(calls) {}
  absl::Status Begin(const UpdateOptions& options, const base::CancelScope& scope) override {
    calls_->Add(absl::StrCat("begin ", options.version));
    return NativeGeneration::Begin(options, scope);
  }
  absl::Status Finish(Version version, const base::CancelScope& scope) override {
    calls_->Add(absl::StrCat("finish ", version));
    return NativeGeneration::Finish(version, scope);
  }
  absl::Status Resume(const base::CancelScope& scope) override {
    calls_->Add("resume");
    return NativeGeneration::Resume(scope);
  }
  absl::Status PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                    const base::CancelScope& scope) override {
    std::string call = "prepare";
    for (const MemoryTag tag : tags) absl::StrAppend(&call, " ", MemoryTagName(tag));
    calls_->Add(call);
    return NativeGeneration::PrepareForGeneration(tags, scope);
  }

 private:
  Calls* const calls_;
};

class IpcWeightSynchronizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto info = refit::RefitInfo::Create({{"a", {100, 50}, refit::DType::kF32},
                                          {"empty", {0, 7}, refit::DType::kF32},
                                          {"b", {9000}, refit::DType::kBF16}});
    ASSERT_THAT(info, IsOk());
    info_ = std::make_unique<refit::RefitInfo>(*std::move(info));
    auto policy = fakes::SeededPolicy::Create(*info_, 7);
    ASSERT_THAT(policy, IsOk());
    policy_ = *std::move(policy);
    noting_policy_ = std::make_unique<NotingPolicy>(policy_.get(), &calls_);
    generation_ = std::make_unique<NotingGeneration>(endpoint_.endpoint(), &calls_);
    options_.endpoint = endpoint_.endpoint();
    options_.ring_slot_bytes = 4096;  // ten buckets
    options_.connect_timeout = absl::Minutes(2);
    options_.sync_timeout = absl::Minutes(2);
    options_.cleanup_timeout = absl::Minutes(1);
  }

  void StartEngine(std::vector<EngineFault> faults = {}) {
    host_.reset();
    auto host = fakes::EngineHost::Start(endpoint_.endpoint(), *info_, std::move(faults), {});
    ASSERT_THAT(host, IsOk());
    host_ = *std::move(host);
  }

  std::unique_ptr<IpcWeightSynchronizer> Make(std::vector<LinkFault> faults = {}) {
    std::unique_ptr<Link> link = std::make_unique<fakes::FaultyLink>(
        std::make_unique<IpcLink>(endpoint_.endpoint(),
                                  RingLayout{options_.ring_slots, options_.ring_slot_bytes}),
        std::move(faults));
    return std::make_unique<IpcWeightSynchronizer>(options_, noting_policy_.get(),
                                                   generation_.get(), std::move(link));
  }

  EngineState State() {
    auto state = host_->engine().State(scope_);
    EXPECT_THAT(state, IsOk());
    return *state;
  }
  void ExpectEngineAnswersAsThePolicy(Version version) {
    auto answer = host_->engine().Answer();
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, version);
    EXPECT_EQ(answer->weights, fakes::AnswerDigest(policy_->parameters()));
  }

  base::testing::SocketFolder endpoint_;
  base::CancelScope scope_{base::Deadline::After(absl::Minutes(2))};
  Calls calls_;
  std::unique_ptr<refit::RefitInfo> info_;
  std::unique_ptr<fakes::SeededPolicy> policy_;
  std::unique_ptr<NotingPolicy> noting_policy_;
  std::unique_ptr<fakes::EngineHost> host_;
  std::unique_ptr<NotingGeneration> generation_;
  SynchronizerOptions options_;
};

TEST_F(IpcWeightSynchronizerTest, AMarkMakesItStaleAndASyncFresh) {
  StartEngine();
  auto synchronizer = Make();
  EXPECT_TRUE(synchronizer->is_stale()) << "a fresh one is stale";
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  EXPECT_TRUE(synchronizer->is_stale());
  for (int i = 0; i < 3; ++i) {
    auto report = synchronizer->SyncWeights();
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->version, 2 * i);
    EXPECT_EQ(report->tensors, 3);
    EXPECT_EQ(report->bytes, info_->total_bytes());
    EXPECT_EQ(report->buckets, 10);
    EXPECT_GE(report->seconds, report->engine_paused_seconds);
    EXPECT_FALSE(synchronizer->is_stale());
    ExpectEngineAnswersAsThePolicy(Version{2} * i);
    policy_->Step();
    synchronizer->MarkStale();
    synchronizer->MarkStale();
    EXPECT_TRUE(synchronizer->is_stale());
  }
}

TEST_F(IpcWeightSynchronizerTest, ASyncThatWasNotNeededIsDoneAllTheSame) {
  StartEngine();
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  EXPECT_FALSE(synchronizer->is_stale());
  ExpectEngineAnswersAsThePolicy(0);
}

TEST_F(IpcWeightSynchronizerTest, AMarkDuringASyncLeavesItStale) {
  StartEngine();
  IpcWeightSynchronizer* marked = nullptr;
  auto synchronizer =
      Make({{/*sync=*/0, /*bucket=*/5, LinkFault::Do::kCall, [&] { marked->MarkStale(); }}});
  marked = synchronizer.get();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  auto report = synchronizer->SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->version, 0);
  EXPECT_TRUE(synchronizer->is_stale());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  EXPECT_FALSE(synchronizer->is_stale());
  ExpectEngineAnswersAsThePolicy(1);
}

TEST_F(IpcWeightSynchronizerTest, AStepBeforeTheFirstByteIsSentUnderItsOwnVersion) {
  StartEngine();
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  noting_policy_->on_offload = [&] {
    policy_->Step();
    synchronizer->MarkStale();
  };
  auto report = synchronizer->SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->version, 1);
  EXPECT_FALSE(synchronizer->is_stale());
  ExpectEngineAnswersAsThePolicy(1);
}

TEST_F(IpcWeightSynchronizerTest, WhatTheTrainerSaysOfTheEngineCountsOnlyIfTheEngineConfirms) {
  StartEngine();
  options_.policy_version = 5;
  {
    auto synchronizer = Make();
    ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
    ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  }
  const auto stale = [&] {
    auto synchronizer = Make();
    EXPECT_THAT(synchronizer->InitCommunicator(), IsOk());
    return synchronizer->is_stale();
  };
  EXPECT_TRUE(stale()) << "not told";
  options_.engine_version = 5;
  EXPECT_FALSE(stale()) << "told, and it is so";
  options_.engine_version = 4;
  EXPECT_TRUE(stale()) << "told another";
  options_.policy_version = 4;
  EXPECT_TRUE(stale()) << "told what the policy is at, and the engine is not";
  options_.policy_version = options_.engine_version.emplace(5);
  ASSERT_THAT(generation_->Begin({6}, scope_), IsOk());
  EXPECT_TRUE(stale()) << "the engine is paused";
  ASSERT_THAT(generation_->Resume(scope_), IsOk());
  EXPECT_FALSE(stale());
  ASSERT_THAT(generation_->Sleep(kAllTags, scope_), IsOk());
  EXPECT_TRUE(stale()) << "the engine's weights have slept";
}

TEST_F(IpcWeightSynchronizerTest, AVersionClaimIsNotBelievedOfAnEngineWithoutAny) {
  StartEngine();
  options_.engine_version = 0;
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  EXPECT_TRUE(synchronizer->is_stale());
}

TEST_F(IpcWeightSynchronizerTest, CallsOutOfTurnAreFailedPrecondition) {
  StartEngine();
  auto synchronizer = Make();
  EXPECT_THAT(synchronizer->SyncWeights(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                    HasSubstr("before InitCommunicator")));
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  EXPECT_THAT(synchronizer->InitCommunicator(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("called before")));
  EXPECT_THAT(synchronizer->Shutdown(), IsOk());
  EXPECT_THAT(synchronizer->SyncWeights(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("after Shutdown")));
  EXPECT_THAT(synchronizer->InitCommunicator(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("after Shutdown")));
  EXPECT_THAT(synchronizer->Shutdown(), IsOk()) << "a second one is harmless";
  EXPECT_THAT(calls_.Take(), ElementsAre()) << "nothing was asked of either side";
}

TEST_F(IpcWeightSynchronizerTest, InitCommunicatorCanBeTriedAgain) {
  options_.connect_timeout = absl::Milliseconds(50);
  options_.endpoint = endpoint_.endpoint();
  auto synchronizer = Make();
  EXPECT_THAT(synchronizer->InitCommunicator(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(endpoint_.endpoint())));
  StartEngine();
  // The timeout was short for a refusal; a busy machine may need more than one try to connect.
  absl::Status connected = synchronizer->InitCommunicator();
  while (absl::IsUnavailable(connected) || absl::IsDeadlineExceeded(connected)) {
    connected = synchronizer->InitCommunicator();
  }
  ASSERT_THAT(connected, IsOk());
  EXPECT_THAT(synchronizer->SyncWeights(), IsOk());
}

TEST_F(IpcWeightSynchronizerTest, ASecondSyncWhileOneRunsIsRefusedAndTheFirstGoesOn) {
  StartEngine();
  IpcWeightSynchronizer* busy = nullptr;
  absl::Status second, third;
  auto synchronizer = Make({{0, 3, LinkFault::Do::kCall, [&] {
                               second = busy->SyncWeights().status();
                               std::thread([&] { third = busy->SyncWeights().status(); }).join();
                             }}});
  busy = synchronizer.get();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  EXPECT_THAT(synchronizer->SyncWeights(), IsOk());
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("while another call runs"));
  EXPECT_THAT(second, refused);
  EXPECT_THAT(third, refused);
  ExpectEngineAnswersAsThePolicy(0);
  EXPECT_EQ(policy_->offloads_before, 1);
}

TEST_F(IpcWeightSynchronizerTest, ShutdownDuringASyncEndsItAndLeavesTheEngineDirtyAndPaused) {
  StartEngine();
  IpcWeightSynchronizer* ending = nullptr;
  std::thread shutting_down;
  auto synchronizer =
      Make({{0, 5, LinkFault::Do::kCall, [&] {
               shutting_down = std::thread([&] { EXPECT_THAT(ending->Shutdown(), IsOk()); });
               // Until it has taken hold.
               while (!absl::StrContains(ending->InitCommunicator().message(), "after Shutdown")) {
                 std::this_thread::yield();
               }
             }}});
  ending = synchronizer.get();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  const absl::Time start = absl::Now();
  EXPECT_THAT(synchronizer->SyncWeights(),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("sync of version 0"), HasSubstr("shut down"))));
  shutting_down.join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_TRUE(synchronizer->is_stale());
  EXPECT_TRUE(State().dirty);
  EXPECT_TRUE(State().paused);
  EXPECT_THAT(host_->engine().last_abort(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down")));
  EXPECT_EQ(policy_->offloads_after, 1);
  // Another synchronizer finds it so and does a full sync.
  auto next = Make();
  ASSERT_THAT(next->InitCommunicator(), IsOk());
  ASSERT_THAT(next->SyncWeights(), IsOk());
  ExpectEngineAnswersAsThePolicy(0);
}

TEST_F(IpcWeightSynchronizerTest, ThePhasesFollowTheirOrder) {
  StartEngine();
  ASSERT_THAT(generation_->Sleep(kAllTags, scope_), IsOk());
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  EXPECT_THAT(calls_.Take(), ElementsAre("offload before", "prepare weights", "begin 0", "finish 0",
                                         "offload after", "prepare kv_cache", "resume"));
  ExpectEngineAnswersAsThePolicy(0);  // awake too
}

TEST_F(IpcWeightSynchronizerTest, DeepVerificationIsRunAtEveryNthSyncTheFirstIncluded) {
  StartEngine();
  options_.deep_verification_every = 3;
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  for (int i = 0; i < 7; ++i) {
    auto report = synchronizer->SyncWeights();
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->verification, i % 3 == 0 ? Verification::kEqual : Verification::kNotRun);
  }
}

TEST_F(IpcWeightSynchronizerTest, AfterASyncThatFailedItsDeepVerificationTheNextIsVerified) {
  EngineFault drop;
  drop.update = 0;
  drop.action = EngineFault::Do::kDrop;
  drop.tensor = "a";
  StartEngine({drop});
  options_.deep_verification_every = 3;
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  EXPECT_THAT(synchronizer->SyncWeights(), StatusIs(absl::StatusCode::kDataLoss));
  auto report = synchronizer->SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->verification, Verification::kEqual);
}

TEST_F(IpcWeightSynchronizerTest, AnEngineThatWasRestartedIsSyncedAgain) {
  StartEngine();
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  StartEngine();
  // In one process the end of the old one shows only in what its successor answers, to each of the
  // two connections.
  int failures = 0;
  while (!synchronizer->SyncWeights().ok() && ++failures < 3) {
    EXPECT_TRUE(synchronizer->is_stale());
  }
  EXPECT_LE(failures, 2);
  EXPECT_FALSE(synchronizer->is_stale());
  ExpectEngineAnswersAsThePolicy(0);
}

TEST_F(IpcWeightSynchronizerTest, MarksAndQuestionsOfManyThreadsWaitForNothing) {
  StartEngine();
  auto synchronizer = Make();
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  std::atomic<bool> training{true};
  std::atomic<int> marks{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (training) {
        synchronizer->MarkStale();
        ++marks;
        EXPECT_TRUE(synchronizer->is_stale());
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 10; ++i) EXPECT_THAT(synchronizer->SyncWeights(), IsOk());
  training = false;
  for (std::thread& thread : threads) thread.join();
  auto report = synchronizer->SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->version, marks);
  EXPECT_FALSE(synchronizer->is_stale());
}

// Every way in which a sync fails. The engine had been synced once before.
struct Failure {
  const char* what;
  absl::StatusCode code;
  const char* text;
  bool applied;  // whether the engine may hold bytes of it
  std::vector<EngineFault> engine = {};
  std::vector<LinkFault> link = {};
  absl::Status offload_before = absl::OkStatus();
  absl::Status offload_after = absl::OkStatus();
  bool step_during_transfer = false;
  bool published = false;  // the new version is whole, and only the resume is missing
};

void PrintTo(const Failure& failure, std::ostream* os) { *os << failure.what; }

EngineFault FailAt(EngineFault::At at, int64_t load = 0) {
  return {/*update=*/1, at, load, EngineFault::Do::kFail, "as scripted", "", ""};
}

class FailingSyncTest : public IpcWeightSynchronizerTest,
                        public ::testing::WithParamInterface<Failure> {};

TEST_P(FailingSyncTest, UndoesThePhasesOnceStaysStaleAndTheNextSyncIsWhole) {
  const Failure& failure = GetParam();
  StartEngine(failure.engine);
  options_.deep_verification_every = 1;
  std::vector<LinkFault> faults = failure.link;
  if (failure.step_during_transfer) {
    faults.push_back({/*sync=*/1, /*bucket=*/5, LinkFault::Do::kCall, [&] { policy_->Step(); }});
  }
  auto synchronizer = Make(std::move(faults));
  ASSERT_THAT(synchronizer->InitCommunicator(), IsOk());
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  policy_->Step();
  synchronizer->MarkStale();
  policy_->offload_before_status = failure.offload_before;
  policy_->offload_after_status = failure.offload_after;
  policy_->offloads_before = policy_->offloads_after = 0;

  EXPECT_THAT(synchronizer->SyncWeights(), StatusIs(failure.code, HasSubstr(failure.text)));
  EXPECT_EQ(policy_->offloads_before, 1);
  EXPECT_EQ(policy_->offloads_after, 1);
  EXPECT_TRUE(synchronizer->is_stale());
  EXPECT_EQ(State().dirty, failure.applied && !failure.published);
  EXPECT_EQ(State().paused, failure.applied);
  if (failure.applied) {
    EXPECT_THAT(host_->engine().Answer(), StatusIs(absl::StatusCode::kFailedPrecondition));
  } else {
    auto answer = host_->engine().Answer();
    ASSERT_THAT(answer, IsOk()) << "it still holds the version before, and answers";
    EXPECT_EQ(answer->version, 0);
  }

  policy_->offload_before_status = policy_->offload_after_status = absl::OkStatus();
  ASSERT_THAT(synchronizer->SyncWeights(), IsOk());
  EXPECT_FALSE(synchronizer->is_stale());
  ExpectEngineAnswersAsThePolicy(1);
  EXPECT_EQ(policy_->offloads_before, 2);
  EXPECT_EQ(policy_->offloads_after, 2);
}

Failure WithPolicy(Failure failure, absl::Status offload_before, absl::Status offload_after) {
  failure.offload_before = std::move(offload_before);
  failure.offload_after = std::move(offload_after);
  return failure;
}
Failure WithStep(Failure failure) {
  failure.step_during_transfer = true;
  return failure;
}
Failure Published(Failure failure) {
  failure.published = true;
  return failure;
}

std::vector<Failure> Failures() {
  using At = EngineFault::At;
  using Code = absl::StatusCode;
  const absl::Status ok, full = absl::ResourceExhaustedError("memory is full");
  const LinkFault flip{/*sync=*/1, /*bucket=*/4, LinkFault::Do::kFlipBit};
  const LinkFault lose{/*sync=*/1, /*bucket=*/7, LinkFault::Do::kLoseBytes};
  EngineFault drop = FailAt(At::kLoad);
  drop.action = EngineFault::Do::kDrop;
  drop.tensor = "b";
  return {
      WithPolicy({"CannotOffload", Code::kResourceExhausted, "BeforeRefit: memory is full", false},
                 full, ok),
      Published(
          WithPolicy({"CannotReload", Code::kResourceExhausted, "AfterRefit: memory is full", true},
                     ok, full)),
      {"EngineBegin", Code::kInternal, "as scripted", false, {FailAt(At::kBegin)}},
      {"FirstLoad", Code::kInternal, "loading 'a': as scripted", true, {FailAt(At::kLoad, 0)}},
      {"MiddleLoad", Code::kInternal, "as scripted", true, {FailAt(At::kLoad, 4)}},
      {"End", Code::kInternal, "as scripted", true, {FailAt(At::kEnd)}},
      {"Digests", Code::kInternal, "deep verification", true, {FailAt(At::kDigests)}},
      {"Finish", Code::kInternal, "publishing", true, {FailAt(At::kFinish)}},
      Published({"Resume", Code::kInternal, "resuming the engine", true, {FailAt(At::kResume)}}),
      {"FlippedBit", Code::kDataLoss, "differ from the trainer's: 4", true, {}, {flip}},
      {"LostBytes", Code::kDataLoss, "differ from the trainer's: 7", true, {}, {lose}},
      {"DroppedTensor", Code::kDataLoss, "deep verification", true, {drop}},
      WithStep({"OverlappingStep", Code::kAborted, "optimizer step overlapped", true}),
      WithPolicy({"BothSides",
                  Code::kInternal,
                  "as scripted; then the policy's OffloadAfterRefit: memory is full",
                  true,
                  {FailAt(At::kEnd)}},
                 ok, full),
  };
}

INSTANTIATE_TEST_SUITE_P(Every, FailingSyncTest, ::testing::ValuesIn(Failures()),
                         [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace weight_sync::ipc
