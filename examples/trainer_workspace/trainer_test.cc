// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What a training loop relies on, with this workspace's policy and engine.

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/local_endpoint.h"
#include "engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "policy.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"

namespace trainer {
namespace {

namespace ws = ::weight_sync;

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::ElementsAre;

constexpr Input kPrompt = {1, 0, 0, 0};

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto policy = LinearPolicy::Create();
    ASSERT_THAT(policy, IsOk());
    policy_ = *std::move(policy);
    auto engine = Engine::Start(endpoint_, policy_->source().info());
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
    ws::SynchronizerOptions options;
    options.endpoint = endpoint_;
    options.deep_verification_every = 1;
    auto synchronizer = ws::CreateWeightSynchronizer(options, policy_.get(), &generation_);
    ASSERT_THAT(synchronizer, IsOk());
    synchronizer_ = *std::move(synchronizer);
    ASSERT_THAT(synchronizer_->InitCommunicator(), IsOk());
  }

  // Adds 1 to the answer's first output: half by the weight, half by the bias.
  void Step() {
    policy_->Step(kPrompt, {-0.5F, 0}, /*learning_rate=*/1);
    synchronizer_->MarkStale();
  }

  const std::string endpoint_ =
      ws::base::DefaultEndpointPath(absl::StrCat("trainer_test-", ::getpid()), "engine-0");
  const ws::base::CancelScope scope_{ws::base::Deadline::After(absl::Seconds(60))};
  std::unique_ptr<LinearPolicy> policy_;
  std::unique_ptr<Engine> engine_;
  ws::native::NativeGeneration generation_{endpoint_};
  std::unique_ptr<ws::WeightSynchronizer> synchronizer_;
};

TEST_F(TrainerTest, TheEngineAnswersWithEachSyncsWeightsAndNoOthers) {
  EXPECT_THAT(engine_->Generate(kPrompt), StatusIs(absl::StatusCode::kFailedPrecondition));
  for (int version = 0; version < 3; ++version) {
    auto report = synchronizer_->SyncWeights();
    ASSERT_THAT(report.status(), IsOk());
    EXPECT_EQ(report->verification, ws::Verification::kEqual);
    Step();
    // The trainer is a step ahead, and the engine does not know.
    EXPECT_TRUE(synchronizer_->is_stale());
    auto answer = engine_->Generate(kPrompt);
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, version);
    EXPECT_THAT(answer->output, ElementsAre(static_cast<float>(version), 0));
  }
}

TEST_F(TrainerTest, AnEngineWithMixedWeightsIsSilentUntilAFullSync) {
  ASSERT_THAT(synchronizer_->SyncWeights().status(), IsOk());
  // A sync of another trainer's, which dies after its first tensor.
  ASSERT_THAT(engine_->Begin({/*version=*/7}, scope_), IsOk());
  ASSERT_THAT(engine_->BeginUpdate(7), IsOk());
  ASSERT_THAT(engine_->LoadTensor(1, std::make_unique<std::byte[]>(kOutputs * sizeof(float))),
              IsOk());
  engine_->AbortUpdate(absl::UnavailableError("the trainer died"));
  EXPECT_THAT(engine_->Finish(7, scope_), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(engine_->Resume(scope_), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(engine_->Generate(kPrompt), StatusIs(absl::StatusCode::kFailedPrecondition));

  Step();
  ASSERT_THAT(synchronizer_->SyncWeights().status(), IsOk());
  auto answer = engine_->Generate(kPrompt);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->version, 1);
  EXPECT_THAT(answer->output, ElementsAre(1, 0));
}

}  // namespace
}  // namespace trainer
