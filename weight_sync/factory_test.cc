// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/factory.h"

#include <memory>

#include "absl/status/status_matchers.h"
#include "fakes/fake_engine.h"
#include "fakes/seeded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FactoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto info = refit::RefitInfo::Create({{"a", {4}, refit::DType::kF32}});
    ASSERT_THAT(info, IsOk());
    auto policy = fakes::SeededPolicy::Create(*info, 1);
    ASSERT_THAT(policy, IsOk());
    policy_ = *std::move(policy);
    auto engine = fakes::FakeEngine::Create(*info, {});
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
    options_.endpoint = "/tmp/weight_sync_no_such_engine.sock";
  }

  absl::Status Create() {
    return CreateWeightSynchronizer(options_, policy_.get(), engine_.get()).status();
  }

  std::unique_ptr<fakes::SeededPolicy> policy_;
  std::unique_ptr<fakes::FakeEngine> engine_;
  SynchronizerOptions options_;
};

TEST_F(FactoryTest, MakesAColocatedVllmSynchronizerThatIsStaleAndTouchesNothing) {
  auto synchronizer = CreateWeightSynchronizer(options_, policy_.get(), engine_.get());
  ASSERT_THAT(synchronizer, IsOk());
  EXPECT_TRUE((*synchronizer)->is_stale());
  EXPECT_THAT((*synchronizer)->SyncWeights(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(policy_->offloads_before, 0);
}

TEST_F(FactoryTest, NamesTheTopologyThatIsNotThereYet) {
  options_.colocated = false;
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnimplemented,
                                 AllOf(HasSubstr("non-colocated vLLM"), HasSubstr("NCCL"))));
  options_.engine = EngineKind::kSglang;
  EXPECT_THAT(Create(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("non-colocated SGLang"), HasSubstr("colocate it"))));
  options_.colocated = true;
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnimplemented,
                                 AllOf(HasSubstr("colocated SGLang"), HasSubstr("HTTP"),
                                       ::testing::Not(HasSubstr("non-colocated")))));
}

TEST_F(FactoryTest, AWrongSettingIsNamed) {
  options_.ring_slots = 0;
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ring_slots")));
}

TEST_F(FactoryTest, NeedsAPolicyAndAGeneration) {
  EXPECT_THAT(CreateWeightSynchronizer(options_, nullptr, engine_.get()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("policy")));
  EXPECT_THAT(CreateWeightSynchronizer(options_, policy_.get(), nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("generation")));
}

}  // namespace
}  // namespace weight_sync
