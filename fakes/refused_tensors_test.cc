// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Trainer and engine process that do not hold the same tensors, or the same slot size: refused
// before any byte, with the tensor named, and the engine still answers its old version.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/time/clock.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using refit::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<refit::TensorSpec> Model() {
  return {{"model.embed_tokens.weight", {64, 16}, DType::kBF16},
          {"model.vision.patch.weight", {1280, 3}, DType::kF32},
          {"model.norm.weight", {16}, DType::kBF16}};
}

class RefusedTensorsTest : public ProcessTest {
 protected:
  void SetUp() override { Serve(Model()); }

  void TearDown() override {
    served_.reset();
    ProcessTest::TearDown();
  }

  // An engine of these tensors, answering version 0 of a trainer that has left.
  void Serve(const std::vector<refit::TensorSpec>& tensors) {
    served_.reset();
    engine_.reset();
    StartEngine(*refit::RefitInfo::Create(tensors));
    served_ = StartTrainer(*refit::RefitInfo::Create(tensors));
    ExpectWholeSync(*served_);
    ASSERT_THAT(served_->synchronizer().Shutdown(), IsOk());
  }

  // A trainer of these tensors is refused with this text; the engine answers as before.
  template <typename Matcher>
  void ExpectRefused(const std::vector<refit::TensorSpec>& tensors, const Matcher& text) {
    Trainer trainer({*refit::RefitInfo::Create(tensors), SmallRing(Endpoint())});
    const absl::Time start = absl::Now();
    EXPECT_THAT(trainer.synchronizer().InitCommunicator(),
                StatusIs(absl::StatusCode::kInvalidArgument, text));
    EXPECT_LT(absl::Now() - start, kAtOnce);
    EXPECT_EQ(RingMappings(::getpid()), 0);
    EXPECT_THAT(trainer.synchronizer().SyncWeights(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    ExpectStillServing();
  }

  void ExpectStillServing() {
    const auto answer = served_->Ask();
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->version, 0);
    EXPECT_EQ(answer->weights, AnswerDigest(served_->policy().parameters()));
  }

  std::unique_ptr<Trainer> served_;
};

TEST_F(RefusedTensorsTest, AnotherName) {
  auto tensors = Model();
  tensors[2].name = "model.final_norm.weight";
  ExpectRefused(tensors, AllOf(HasSubstr("1 only at the trainer: model.final_norm.weight"),
                               HasSubstr("1 only at the engine: model.norm.weight")));
}

TEST_F(RefusedTensorsTest, APrefixOnEveryNameIsCountedAndTheFirstAreShown) {
  auto tensors = Model();
  for (auto& tensor : tensors) tensor.name = "language_model." + tensor.name;
  ExpectRefused(tensors, AllOf(HasSubstr("3 only at the trainer: language_model."),
                               HasSubstr("3 only at the engine: model.")));
}

TEST_F(RefusedTensorsTest, ATensorLess) {
  auto tensors = Model();
  tensors.pop_back();
  ExpectRefused(tensors, AllOf(HasSubstr("1 only at the engine: model.norm.weight"),
                               Not(HasSubstr("only at the trainer"))));
}

TEST_F(RefusedTensorsTest, ATensorMore) {
  auto tensors = Model();
  tensors.push_back({"model.extra", {1}, DType::kF32});
  ExpectRefused(tensors, AllOf(HasSubstr("1 only at the trainer: model.extra"),
                               Not(HasSubstr("only at the engine"))));
}

TEST_F(RefusedTensorsTest, AnotherShapeOfTheSameBytes) {
  auto tensors = Model();
  tensors[0].shape = {16, 64};
  ExpectRefused(tensors,
                HasSubstr("1 with another shape: model.embed_tokens.weight (trainer [16, 64], "
                          "engine [64, 16])"));
}

TEST_F(RefusedTensorsTest, AnEmptyPlaceholderOfAShardedParameter) {
  auto tensors = Model();
  tensors[1].shape = {0};
  ExpectRefused(tensors, HasSubstr("model.vision.patch.weight (trainer [0], engine [1280, 3])"));
}

TEST_F(RefusedTensorsTest, AnotherDTypeOfTheSameSize) {
  auto tensors = Model();
  tensors[0].dtype = DType::kF16;
  ExpectRefused(tensors, HasSubstr("1 with another dtype: model.embed_tokens.weight (trainer F16, "
                                   "engine BF16)"));
}

TEST_F(RefusedTensorsTest, AnEngineThatHasOneOfATiedPair) {
  auto tensors = Model();
  tensors.push_back({"lm_head.weight", {64, 16}, DType::kBF16});
  ExpectRefused(tensors, HasSubstr("1 only at the trainer: lm_head.weight"));
  // A nested head is a tensor like any other.
  auto nested = Model();
  nested.push_back({"mtp.lm_head.weight", {64, 16}, DType::kBF16});
  ExpectRefused(nested, HasSubstr("1 only at the trainer: mtp.lm_head.weight"));
  Serve(nested);
  ExpectRefused(Model(), HasSubstr("1 only at the engine: mtp.lm_head.weight"));
}

TEST_F(RefusedTensorsTest, AnotherOrderIsNoDifference) {
  auto tensors = Model();
  std::swap(tensors[0], tensors[2]);
  Trainer trainer({*refit::RefitInfo::Create(tensors), SmallRing(Endpoint()), {}, /*seed=*/9});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  const auto report = trainer.synchronizer().SyncWeights();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->verification, Verification::kEqual);
}

using RefusedSlotsTest = ProcessTest;

TEST_F(RefusedSlotsTest, AnEngineThatInsistsOnAnotherSlotSizeNamesBoth) {
  auto engine = EngineProcess::Start({Endpoint(), SmallTensors(8), {}, /*slot_bytes=*/1024});
  ASSERT_THAT(engine, IsOk());
  {
    Trainer trainer({SmallTensors(8), SmallRing(Endpoint())});
    const absl::Time start = absl::Now();
    EXPECT_THAT(trainer.synchronizer().InitCommunicator(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the trainer's ring_slot_bytes is 4096, this engine's 1024")));
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  }
  SynchronizerOptions options = SmallRing(Endpoint());
  options.ring_slot_bytes = 1024;
  Trainer trainer({SmallTensors(8), options});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());
  ExpectWholeSync(trainer);
}

}  // namespace
}  // namespace weight_sync::fakes
