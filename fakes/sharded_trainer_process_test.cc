// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A sharded trainer's four processes and an engine's, all real: whole syncs, and a rank that is killed
// while it fills. The engine then answers from no mix, the other ranks know at once, and the next
// trainer finds everything in order.

#include <signal.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/log/absl_check.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "fakes/process_test.h"
#include "fakes/sharded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/device.h"
#include "refit/packing/bucket.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/rank_processes.h"
#include "weight_sync/contributing_synchronizer.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/generation.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"
#include "weight_sync/options.h"
#include "weight_sync/policy.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync::fakes {
namespace {

using refit::testing::RankProcesses;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 4;
constexpr int kFatalBucket = 5;

// A program whose process is killed at a bucket of its second sync.
class DyingProgram : public refit::Program {
 public:
  explicit DyingProgram(std::unique_ptr<refit::Program> program) : program_(std::move(program)) {}
  absl::StatusOr<refit::ReadGuard> Begin(Version version, const base::CancelScope& scope) override {
    ++syncs_;
    return program_->Begin(version, scope);
  }
  absl::StatusOr<refit::Event> Fill(int bucket, const refit::DeviceSpan& dst,
                                    refit::Stream& stream) override {
    if (syncs_ == 2 && bucket == kFatalBucket) ::raise(SIGKILL);
    return program_->Fill(bucket, dst, stream);
  }

 private:
  const std::unique_ptr<refit::Program> program_;
  int syncs_ = 0;
};

class DyingSource : public refit::RefitSource {
 public:
  explicit DyingSource(refit::RefitSource* source) : source_(source) {}
  const refit::RefitInfo& info() const override { return source_->info(); }
  absl::StatusOr<std::unique_ptr<refit::Program>> Compile(
      absl::Span<const refit::Bucket> buckets) override {
    WS_ASSIGN_OR_RETURN(auto program, source_->Compile(buckets));
    return std::make_unique<DyingProgram>(std::move(program));
  }
  absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const override {
    return source_->ReferenceDigest(tensor);
  }

 private:
  refit::RefitSource* const source_;
};

class DyingPolicy : public Policy {
 public:
  explicit DyingPolicy(refit::RefitSource* source) : source_(source) {}
  refit::RefitSource& source() override { return source_; }

 private:
  DyingSource source_;
};

// One rank's training loop, of three syncs. It says how each ended.
void Train(refit::Communicator& communicator, RankProcesses::Side& side,
           const SynchronizerOptions& options, int victim) {
  auto policy = ShardedPolicy::Create(&communicator, /*seed=*/7);
  ABSL_CHECK_OK(policy);
  DyingPolicy dying(&(*policy)->source());
  Policy* const given =
      communicator.rank() == victim ? static_cast<Policy*>(&dying) : policy->get();
  native::NativeGeneration generation(options.endpoint);
  std::unique_ptr<WeightSynchronizer> synchronizer;
  if (communicator.rank() == 0) {
    synchronizer = std::make_unique<ipc::IpcWeightSynchronizer>(options, given, &generation,
                                                                /*link=*/nullptr, &communicator);
  } else {
    synchronizer = std::make_unique<ContributingSynchronizer>(options, given, &communicator);
  }
  ABSL_CHECK_OK(synchronizer->InitCommunicator());
  for (int sync = 0; sync < 3; ++sync) {
    ABSL_CHECK_OK((*policy)->Bind(synchronizer->policy_version()));
    side.Say(synchronizer->SyncWeights().status().ToString());
    (*policy)->Step();
    synchronizer->MarkStale();
  }
  side.WaitForRelease();
}

class ShardedTrainerProcessTest : public ProcessTest,
                                  public ::testing::WithParamInterface<RankProcesses::Over> {
 protected:
  RankProcesses StartTrainer(int victim = -1) {
    return RankProcesses(
        kRanks, GetParam(),
        [this, victim](refit::Communicator& communicator, RankProcesses::Side& side) {
          Train(communicator, side, SmallRing(Endpoint()), victim);
        });
  }

  // Three syncs, each verified by the engine's own table, and the engine at the last one's version.
  void ExpectWholeSyncs() {
    RankProcesses ranks = StartTrainer();
    for (int r = 0; r < kRanks; ++r) {
      for (int sync = 0; sync < 3; ++sync) EXPECT_EQ(ranks[r].Hear(), "OK") << "rank " << r;
    }
    ranks.ExpectCleanEnd();
    const EngineState state = State();
    EXPECT_EQ(state.version, 2);
    EXPECT_FALSE(state.dirty || state.paused);
  }

  // Once the engine has seen the end of the trainer before.
  EngineState State() {
    absl::StatusOr<EngineState> state;
    EXPECT_TRUE(WaitUntil([&] {
      native::NativeGeneration generation(Endpoint());
      state = generation.State(base::CancelScope(base::Deadline::After(kLongTimeout)));
      return state.ok();
    }));
    return *state;
  }
};
INSTANTIATE_TEST_SUITE_P(All, ShardedTrainerProcessTest,
                         ::testing::Values(RankProcesses::Over::kHost, RankProcesses::Over::kTcp),
                         [](const auto& info) { return refit::testing::OverName(info.param); });

TEST_P(ShardedTrainerProcessTest, SyncsTheEngineAsOneTrainer) {
  StartEngine(ShardedPolicy::Info());
  ExpectWholeSyncs();
}

TEST_P(ShardedTrainerProcessTest, ARankThatIsKilledWhileItFillsFailsAllAndTheEngineAnswersNoMix) {
  StartEngine(ShardedPolicy::Info());
  for (const int victim : {2, 0}) {
    SCOPED_TRACE(victim);
    RankProcesses ranks = StartTrainer(victim);
    EXPECT_EQ(ranks[victim].Hear(), "OK");
    EXPECT_EQ(ranks[victim].Hear(), "");
    const absl::Time killed = absl::Now();
    for (int r = 0; r < kRanks; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(ranks[r].Hear(), "OK");
      for (int twice = 0; twice < 2; ++twice) {
        EXPECT_THAT(ranks[r].Hear(), AllOf(StartsWith("UNAVAILABLE"),
                                           HasSubstr(absl::StrCat("rank ", victim, " died"))));
      }
    }
    EXPECT_LT(absl::Now() - killed, kLongTimeout / 2) << "nobody waited for a deadline";
    ranks.ExpectCleanEnd(victim);
    // Dirty, unless the rank was dead before the engine had loaded a byte: a rank may be ahead of
    // rank 0, and rank 0 of the engine.
    const EngineState state = State();
    EXPECT_TRUE(state.dirty || state.version == 0);
    EXPECT_TRUE(state.paused || (victim != 0 && !state.dirty));

    ExpectWholeSyncs();
  }
}

}  // namespace
}  // namespace weight_sync::fakes
