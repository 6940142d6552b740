// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/display.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::demo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StepReport Synced() {
  StepReport step;
  step.step = 1;
  step.trained = 1;
  step.version = 1;
  step.stale_before = true;
  step.answered = true;
  step.sync.emplace();
  step.sync->bytes = 2'000'000'000;
  step.sync->transfer_seconds = 0.5;
  return step;
}

TEST(DisplayTest, TheTableSaysWhichStepsAreProved) {
  StepReport idle;
  idle.answered = true;
  StepReport failed;
  failed.stale_before = failed.stale_after = true;
  StepReport wrong_answer = Synced();
  wrong_answer.answered = false;
  testing::internal::CaptureStdout();
  Display(Display::Mode::kLog).Table({Synced(), idle, failed, wrong_answer}, 8e9);
  const std::string table = testing::internal::GetCapturedStdout();
  EXPECT_THAT(table, AllOf(HasSubstr("4.00       50 %     equal\n"), HasSubstr("-   no sync\n"),
                           HasSubstr("-    FAILED\n"), HasSubstr("50 %    FAILED\n")));
}

TEST(DisplayTest, ASilentOnePrintsNothing) {
  testing::internal::CaptureStdout();
  Display display(Display::Mode::kSilent);
  display.Show({1, "training", 0, 0});
  display.Step(Synced());
  display.Table({Synced()}, 8e9);
  display.Verdict(true, "OK", "");
  EXPECT_THAT(testing::internal::GetCapturedStdout(), IsEmpty());
}

}  // namespace
}  // namespace weight_sync::demo
