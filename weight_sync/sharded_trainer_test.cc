// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A trainer of three ranks, which are threads here, each with its synchronizer, and an engine over
// its real socket and ring: what one rank knows of a sync, all know.

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_faults.h"
#include "fakes/engine_host.h"
#include "fakes/fake_engine.h"
#include "fakes/faulty_link.h"
#include "fakes/sharded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/read_guard.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "weight_sync/contributing_synchronizer.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"
#include "weight_sync/options.h"
#include "weight_sync/sync_report.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::weight_sync::fakes::EngineFault;
using ::weight_sync::fakes::LinkFault;

constexpr int kRanks = 3;

class ShardedTrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto communicators = refit::MakeThreadCommunicators(kRanks);
    ASSERT_THAT(communicators, IsOk());
    communicators_ = *std::move(communicators);
    for (int r = 0; r < kRanks; ++r) {
      auto policy = fakes::ShardedPolicy::Create(communicators_[Index(r)].get(), /*seed=*/7);
      ASSERT_THAT(policy, IsOk());
      policies_.push_back(*std::move(policy));
    }
    options_.endpoint = folder_.endpoint();
    options_.ring_slot_bytes = 4096;
    options_.connect_timeout = options_.sync_timeout = absl::Minutes(2);
    options_.cleanup_timeout = absl::Minutes(1);
    options_.deep_verification_every = 1;
  }

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  void StartEngine(std::vector<EngineFault> faults = {}) {
    host_.reset();
    auto host = fakes::EngineHost::Start(options_.endpoint, fakes::ShardedPolicy::Info(),
                                         std::move(faults), {});
    ASSERT_THAT(host, IsOk());
    host_ = *std::move(host);
  }

  void MakeSynchronizers(std::vector<LinkFault> faults = {}) {
    synchronizers_.clear();
    generation_ = std::make_unique<native::NativeGeneration>(options_.endpoint);
    synchronizers_.push_back(std::make_unique<ipc::IpcWeightSynchronizer>(
        options_, policies_[0].get(), generation_.get(),
        std::make_unique<fakes::FaultyLink>(
            std::make_unique<ipc::IpcLink>(
                options_.endpoint, ipc::RingLayout{options_.ring_slots, options_.ring_slot_bytes}),
            std::move(faults)),
        communicators_[0].get()));
    for (int r = 1; r < kRanks; ++r) {
      synchronizers_.push_back(std::make_unique<ContributingSynchronizer>(
          options_, policies_[Index(r)].get(), communicators_[Index(r)].get()));
    }
  }

  // The same call on all ranks at once.
  std::vector<absl::Status> OnAll(const std::function<absl::Status(int rank)>& call) {
    std::vector<absl::Status> statuses(kRanks);
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r) {
      threads.emplace_back([&, r] { statuses[Index(r)] = call(r); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  std::vector<absl::Status> InitAll() {
    return OnAll([&](int r) { return synchronizers_[Index(r)]->InitCommunicator(); });
  }
  std::vector<absl::Status> SyncAll() {
    return OnAll([&](int r) {
      auto report = synchronizers_[Index(r)]->SyncWeights();
      if (report.ok()) reports_[r] = *report;
      return report.status();
    });
  }

  // An optimizer step and its mark on every rank, and its weights bound.
  void StepAll() {
    for (int r = 0; r < kRanks; ++r) {
      policies_[Index(r)]->Step();
      synchronizers_[Index(r)]->MarkStale();
    }
    BindAll();
  }
  void BindAll() {
    for (int r = 0; r < kRanks; ++r) {
      ASSERT_THAT(policies_[Index(r)]->Bind(synchronizers_[Index(r)]->policy_version()), IsOk());
    }
  }
  std::vector<bool> Stale() {
    std::vector<bool> stale;
    for (const auto& synchronizer : synchronizers_) stale.push_back(synchronizer->is_stale());
    return stale;
  }
  void ExpectEngineAnswers(Version version) {
    auto answer = host_->engine().Answer();
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, version);
    EXPECT_EQ(answer->weights, fakes::AnswerDigest(policies_[0]->parameters()));
  }

  const base::testing::SocketFolder folder_;
  SynchronizerOptions options_;
  std::unique_ptr<fakes::EngineHost> host_;
  std::vector<std::unique_ptr<refit::Communicator>> communicators_;
  std::vector<std::unique_ptr<fakes::ShardedPolicy>> policies_;
  std::unique_ptr<native::NativeGeneration> generation_;
  std::vector<std::unique_ptr<WeightSynchronizer>> synchronizers_;
  SyncReport reports_[kRanks];
};

TEST_F(ShardedTrainerTest, EveryRankRunsTheSameLoop) {
  StartEngine();
  MakeSynchronizers();
  EXPECT_THAT(Stale(), Each(true));
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  for (Version version = 0; version < 4; ++version) {
    EXPECT_THAT(Stale(), Each(true));
    ASSERT_THAT(SyncAll(), Each(IsOk()));
    EXPECT_THAT(Stale(), Each(false));
    ExpectEngineAnswers(version);
    for (const SyncReport& report : reports_) {
      EXPECT_EQ(report.version, version);
      EXPECT_EQ(report.tensors, fakes::ShardedPolicy::Info().size());
      EXPECT_EQ(report.bytes, fakes::ShardedPolicy::Info().total_bytes());
      EXPECT_GT(report.buckets, 10);
      EXPECT_GT(report.trainer_blocked_seconds, 0);
      EXPECT_GE(report.seconds, report.trainer_blocked_seconds);
    }
    EXPECT_EQ(reports_[0].verification, Verification::kEqual);
    StepAll();
  }
}

TEST_F(ShardedTrainerTest, SnapshotsFreeTheTrainerOfEveryRankBeforeTheTransferEnds) {
  StartEngine();
  // Each rank steps while the engine takes the first bucket.
  MakeSynchronizers({{/*sync=*/0, /*bucket=*/0, LinkFault::Do::kCall, [&] {
                        for (auto& policy : policies_) {
                          const refit::StepGate::Step step(policy->gate());
                        }
                      }}});
  for (auto& policy : policies_) ASSERT_THAT(policy->source().UseSnapshots(), IsOk());
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  EXPECT_THAT(SyncAll(), Each(IsOk()));
  ExpectEngineAnswers(0);
  for (const SyncReport& report : reports_) {
    EXPECT_GT(report.trainer_blocked_seconds, 0);
    EXPECT_LT(report.trainer_blocked_seconds, report.seconds);
  }
}

TEST_F(ShardedTrainerTest, AllRanksBelieveTheEngineOrNone) {
  StartEngine();
  MakeSynchronizers();
  ASSERT_THAT(InitAll(), Each(IsOk()));
  StepAll();
  ASSERT_THAT(SyncAll(), Each(IsOk()));
  options_.policy_version = 1;
  for (const bool confirmed : {true, false}) {
    options_.engine_version = confirmed ? 1 : 0;
    MakeSynchronizers();
    ASSERT_THAT(InitAll(), Each(IsOk()));
    EXPECT_THAT(Stale(), Each(!confirmed));
  }
}

TEST_F(ShardedTrainerTest, AnEngineThatIsNotThereFailsTheInitOfAllWhichMayBeTriedAgain) {
  options_.connect_timeout = absl::Milliseconds(50);
  MakeSynchronizers();
  EXPECT_THAT(InitAll(),
              Each(StatusIs(absl::StatusCode::kUnavailable, HasSubstr(options_.endpoint))));
  StartEngine();
  options_.connect_timeout = absl::Minutes(2);
  MakeSynchronizers();
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  EXPECT_THAT(SyncAll(), Each(IsOk()));
}

TEST_F(ShardedTrainerTest, ARestartedEngineIsSyncedByAll) {
  StartEngine();
  MakeSynchronizers();
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  ASSERT_THAT(SyncAll(), Each(IsOk()));
  StartEngine();
  // As in one process: its end shows in what the successor answers to each of two connections.
  std::vector<absl::Status> statuses = SyncAll();
  for (int failures = 0; !statuses[0].ok() && failures < 3; ++failures) {
    EXPECT_THAT(statuses, Each(::testing::Not(IsOk())));
    EXPECT_THAT(Stale(), Each(true));
    statuses = SyncAll();
  }
  EXPECT_THAT(statuses, Each(IsOk()));
  EXPECT_THAT(Stale(), Each(false));
  ExpectEngineAnswers(0);
}

TEST_F(ShardedTrainerTest, ARankThatDoesNotComeIsNamedByTheOthers) {
  StartEngine();
  options_.sync_timeout = absl::Seconds(2);
  MakeSynchronizers();
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  const auto statuses = OnAll([&](int r) {
    return r == 1 ? absl::OkStatus() : synchronizers_[Index(r)]->SyncWeights().status();
  });
  for (const int r : {0, 2}) {
    EXPECT_THAT(statuses[Index(r)],
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 1")));
  }
  EXPECT_FALSE(
      host_->engine().State(base::CancelScope(base::Deadline::After(absl::Minutes(1))))->dirty);
}

TEST_F(ShardedTrainerTest, ShutdownOfRankZeroEndsTheSyncOfAll) {
  StartEngine();
  WeightSynchronizer* root = nullptr;
  std::thread shutting_down;
  MakeSynchronizers(
      {{0, 5, LinkFault::Do::kCall, [&] {
          shutting_down = std::thread([&] { EXPECT_THAT(root->Shutdown(), IsOk()); });
          // Until it has taken hold.
          while (!absl::StrContains(root->InitCommunicator().message(), "after Shutdown")) {
            std::this_thread::yield();
          }
        }}});
  root = synchronizers_[0].get();
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  EXPECT_THAT(SyncAll(), Each(StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down"))));
  shutting_down.join();
  EXPECT_THAT(Stale(), Each(true));
}

TEST_F(ShardedTrainerTest, ShutdownOfAnotherRankEndsTheSyncOfAll) {
  StartEngine();
  std::thread shutting_down;
  MakeSynchronizers({{0, 5, LinkFault::Do::kCall, [&] {
                        shutting_down = std::thread(
                            [&] { EXPECT_THAT(synchronizers_[2]->Shutdown(), IsOk()); });
                        shutting_down.join();
                      }}});
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  EXPECT_THAT(SyncAll(), Each(StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down"))));
  EXPECT_THAT(Stale(), Each(true));
}

TEST_F(ShardedTrainerTest, CallsOutOfTurnAreRefusedOnEveryRank) {
  MakeSynchronizers();
  EXPECT_THAT(SyncAll(), Each(StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("before InitCommunicator"))));
  for (const auto& synchronizer : synchronizers_) {
    EXPECT_THAT(synchronizer->Shutdown(), IsOk());
    EXPECT_THAT(synchronizer->Shutdown(), IsOk());
  }
  EXPECT_THAT(InitAll(),
              Each(StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("after Shutdown"))));
}

TEST_F(ShardedTrainerTest, TheFactoryGivesRankZeroTheEngine) {
  StartEngine();
  native::NativeGeneration generation(options_.endpoint);
  for (int r = 0; r < kRanks; ++r) {
    auto made =
        CreateWeightSynchronizer(options_, policies_[Index(r)].get(),
                                 r == 0 ? &generation : nullptr, communicators_[Index(r)].get());
    ASSERT_THAT(made, IsOk());
    synchronizers_.push_back(*std::move(made));
  }
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  EXPECT_THAT(SyncAll(), Each(IsOk()));
  ExpectEngineAnswers(0);
  EXPECT_THAT(
      CreateWeightSynchronizer(options_, policies_[1].get(), &generation, communicators_[1].get()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 1 has a generation")));
  EXPECT_THAT(
      CreateWeightSynchronizer(options_, policies_[0].get(), nullptr, communicators_[0].get()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("generation is null")));
}

// Every way in which a sync fails, on whichever rank. The engine had been synced once before.
struct Failure {
  const char* what;
  absl::StatusCode code;
  const char* text;                // on every rank
  std::optional<Version> answers;  // what the engine does then: nothing, where it may hold a mix
  std::vector<EngineFault> engine = {};
  std::vector<LinkFault> link = {};
  int stepping = -1;  // a rank that steps during the transfer
  std::function<void(fakes::ShardedPolicy& rank1)> policy = nullptr;
  bool unmarked = false;  // rank 1 forgot its mark
};

void PrintTo(const Failure& failure, std::ostream* os) { *os << failure.what; }

EngineFault FailAt(EngineFault::At at) {
  return {/*update=*/1, at, /*load=*/0, EngineFault::Do::kFail, "as scripted", "", ""};
}

std::vector<Failure> Failures() {
  using At = EngineFault::At;
  using Code = absl::StatusCode;
  EngineFault drop = FailAt(At::kLoad);
  drop.action = EngineFault::Do::kDrop;
  drop.tensor = "model.norm.weight";
  std::vector<Failure> failures = {
      {"EngineDoesNotPause", Code::kInternal, "as scripted", 0, {FailAt(At::kBegin)}},
      {"EngineDoesNotLoad", Code::kInternal, "as scripted", std::nullopt, {FailAt(At::kLoad)}},
      {"EngineDoesNotFinish", Code::kInternal, "as scripted", std::nullopt, {FailAt(At::kFinish)}},
      {"EngineDoesNotResume", Code::kInternal, "as scripted", std::nullopt, {FailAt(At::kResume)}},
      {"EngineDropsATensor", Code::kDataLoss, "model.norm.weight", std::nullopt, {drop}},
      {"ABitFlips", Code::kDataLoss, "bucket", std::nullopt, {}, {{1, 4, LinkFault::Do::kFlipBit}}},
  };
  for (int stepping = 0; stepping < kRanks; ++stepping) {
    static const char* const names[kRanks] = {"RankZeroSteps", "RankOneSteps", "RankTwoSteps"};
    failures.push_back({names[stepping], Code::kAborted, "optimizer step", std::nullopt});
    failures.back().stepping = stepping;
  }
  failures.push_back({"RankOneDoesNotOffload", Code::kResourceExhausted, "memory is full", 0});
  failures.back().policy = [](fakes::ShardedPolicy& rank1) {
    rank1.offload_before_status = absl::ResourceExhaustedError("memory is full");
  };
  failures.push_back({"RankOneDoesNotComeBack", Code::kResourceExhausted, "memory is full", 1});
  failures.back().policy = [](fakes::ShardedPolicy& rank1) {
    rank1.offload_after_status = absl::ResourceExhaustedError("memory is full");
  };
  failures.push_back(
      {"RankOneHasNothingBound", Code::kFailedPrecondition, "no arrays are bound", 0});
  failures.back().policy = [](fakes::ShardedPolicy& rank1) { rank1.source().Release(); };
  failures.push_back({"RankOneForgotItsMark", Code::kFailedPrecondition, "rank 1", 0});
  failures.back().unmarked = true;
  return failures;
}

class FailingShardedSyncTest : public ShardedTrainerTest,
                               public ::testing::WithParamInterface<Failure> {};
INSTANTIATE_TEST_SUITE_P(All, FailingShardedSyncTest, ::testing::ValuesIn(Failures()),
                         [](const auto& info) { return std::string(info.param.what); });

TEST_P(FailingShardedSyncTest, FailsOnAllRanksAndTheNextSyncIsWhole) {
  const Failure& failure = GetParam();
  StartEngine(failure.engine);
  std::vector<LinkFault> faults = failure.link;
  if (failure.stepping >= 0) {
    faults.push_back(
        {/*sync=*/1, /*bucket=*/5, LinkFault::Do::kCall,
         [&] { const refit::StepGate::Step step(policies_[Index(failure.stepping)]->gate()); }});
  }
  MakeSynchronizers(std::move(faults));
  ASSERT_THAT(InitAll(), Each(IsOk()));
  BindAll();
  ASSERT_THAT(SyncAll(), Each(IsOk()));
  for (int r = 0; r < kRanks; ++r) {
    policies_[Index(r)]->Step();
    if (r != 1 || !failure.unmarked) synchronizers_[Index(r)]->MarkStale();
    policies_[Index(r)]->offloads_before = policies_[Index(r)]->offloads_after = 0;
  }
  BindAll();
  if (failure.policy) failure.policy(*policies_[1]);

  EXPECT_THAT(SyncAll(), Each(StatusIs(failure.code, HasSubstr(failure.text))));
  EXPECT_THAT(Stale(), Each(true));
  for (const auto& policy : policies_) {
    EXPECT_EQ(policy->offloads_before, 1);
    EXPECT_EQ(policy->offloads_after, 1);
  }
  auto answer = host_->engine().Answer();
  if (failure.answers.has_value()) {
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, *failure.answers);
  } else {
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kFailedPrecondition));
  }

  policies_[1]->offload_before_status = policies_[1]->offload_after_status = absl::OkStatus();
  if (failure.unmarked) synchronizers_[1]->MarkStale();
  BindAll();
  ASSERT_THAT(SyncAll(), Each(IsOk()));
  EXPECT_THAT(Stale(), Each(false));
  ExpectEngineAnswers(1);
}

}  // namespace
}  // namespace weight_sync
