// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Bytes that are torn, flipped, lost, dropped or swapped on the way to an engine process: each is
// found, also by deep verification alone where a wire digest or the read guard would find it first.
// The engine is then dirty, and the next sync heals it.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "fakes/checks_for_testing.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

class WrongBytesTest : public ProcessTest {
 protected:
  // Both strike in the second sync, at its fifth bucket, which is tensor t4.
  static constexpr int64_t kSync = 1;
  static constexpr int64_t kBucket = 4;

  void Start(const Checks& checks, std::vector<LinkFault> link, std::vector<EngineFault> engine,
             int verify_every = 1) {
    StartEngine(SmallTensors(8), std::move(engine));
    SynchronizerOptions options = SmallRing(Endpoint());
    options.checks = checks;
    options.deep_verification_every = verify_every;
    trainer_ = std::make_unique<Trainer>(TrainerOptions{SmallTensors(8), options, std::move(link)});
    ASSERT_THAT(trainer_->synchronizer().InitCommunicator(), IsOk());
  }

  void ExpectFoundAndHealed(absl::StatusCode code, const std::string& text) {
    ExpectWholeSync(*trainer_);
    trainer_->Step();
    EXPECT_THAT(trainer_->synchronizer().SyncWeights(), StatusIs(code, HasSubstr(text)));
    ExpectDirty(*trainer_);
    ExpectWholeSync(*trainer_);
  }

  void TearDown() override {
    trainer_.reset();
    ProcessTest::TearDown();
  }

  LinkFault StepInTheMiddle() {
    return {kSync, kBucket, LinkFault::Do::kCall, [this] { trainer_->policy().Step(); }};
  }

  static EngineFault AtTheEngine(EngineFault::Do action) {
    EngineFault fault;
    fault.update = kSync;
    fault.action = action;
    fault.tensor = "t2";
    fault.other = "t5";
    return fault;
  }

  std::unique_ptr<Trainer> trainer_;
};

Checks All() { return ChecksForTesting::Make(/*wire_digests=*/true, /*read_guard=*/true); }
Checks NoDigests() { return ChecksForTesting::Make(/*wire_digests=*/false, /*read_guard=*/true); }
Checks NoGuard() { return ChecksForTesting::Make(/*wire_digests=*/true, /*read_guard=*/false); }

TEST_F(WrongBytesTest, AStepInTheMiddleIsFoundByTheReadGuard) {
  Start(All(), {StepInTheMiddle()}, {});
  ExpectFoundAndHealed(absl::StatusCode::kAborted, "an optimizer step overlapped the sync");
}

TEST_F(WrongBytesTest, AStepInTheMiddleIsFoundByTheReadGuardWithoutDeepVerification) {
  Start(All(), {StepInTheMiddle()}, {}, /*verify_every=*/0);
  ASSERT_THAT(trainer_->synchronizer().SyncWeights(), IsOk());
  trainer_->Step();
  EXPECT_THAT(trainer_->synchronizer().SyncWeights(), StatusIs(absl::StatusCode::kAborted));
  ExpectDirty(*trainer_);
}

TEST_F(WrongBytesTest, AStepInTheMiddleIsFoundByDeepVerificationWithoutTheGuard) {
  Start(NoGuard(), {StepInTheMiddle()}, {});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "deep verification: 5 of 8 tensors differ between trainer and engine: t0, ");
}

TEST_F(WrongBytesTest, AFlippedBitIsFoundByTheWireDigest) {
  Start(All(), {{kSync, kBucket, LinkFault::Do::kFlipBit}}, {});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "digests of 1 of 8 buckets differ from the trainer's: 4; the first holds "
                       "'t4'");
}

TEST_F(WrongBytesTest, AFlippedBitIsFoundByDeepVerificationAlone) {
  Start(NoDigests(), {{kSync, kBucket, LinkFault::Do::kFlipBit}}, {});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "1 of 8 tensors differ between trainer and engine: t4");
}

TEST_F(WrongBytesTest, LostBytesAreFoundByTheWireDigest) {
  Start(All(), {{kSync, kBucket, LinkFault::Do::kLoseBytes}}, {});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss, "differ from the trainer's: 4; ");
}

TEST_F(WrongBytesTest, LostBytesAreFoundByDeepVerificationAlone) {
  Start(NoDigests(), {{kSync, kBucket, LinkFault::Do::kLoseBytes}}, {});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "1 of 8 tensors differ between trainer and engine: t4");
}

TEST_F(WrongBytesTest, ATensorThatTheEngineDropsIsFoundByDeepVerification) {
  Start(All(), {}, {AtTheEngine(EngineFault::Do::kDrop)});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "1 of 8 tensors differ between trainer and engine: t2");
}

TEST_F(WrongBytesTest, TensorsThatTheEngineSwapsAreFoundByDeepVerification) {
  Start(All(), {}, {AtTheEngine(EngineFault::Do::kSwap)});
  ExpectFoundAndHealed(absl::StatusCode::kDataLoss,
                       "2 of 8 tensors differ between trainer and engine: t2, t5");
}

// The control: what is loaded wrongly is invisible to every check on the wire.
TEST_F(WrongBytesTest, DropAndSwapPassWithoutDeepVerification) {
  for (const EngineFault::Do action : {EngineFault::Do::kDrop, EngineFault::Do::kSwap}) {
    Start(All(), {}, {AtTheEngine(action)}, /*verify_every=*/0);
    ASSERT_THAT(trainer_->synchronizer().SyncWeights(), IsOk());
    trainer_->Step();
    ASSERT_THAT(trainer_->synchronizer().SyncWeights(), IsOk());
    const auto answer = trainer_->Ask();
    ASSERT_THAT(answer, IsOk());
    EXPECT_NE(answer->weights, AnswerDigest(trainer_->policy().parameters()));
    trainer_.reset();
    engine_.reset();
  }
}

}  // namespace
}  // namespace weight_sync::fakes
