// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The demo as a person starts it: with the checkpoint of 300 MB that it makes.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/demo/demo_process.h"

namespace weight_sync::demo {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DemoDefaultTest, ProvesItselfAndRemovesWhatItMade) {
  const DemoRun run = RunDemoBinary({});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("101 tensors, 299.9 MB, 3 files"));
  EXPECT_THAT(run.output, HasSubstr("\nOK: 5 steps, 4 syncs"));
  EXPECT_THAT(run.temporary_files, IsEmpty());
}

TEST(DemoDefaultTest, RemovesWhatItMadeWhenItFails) {
  const DemoRun run = RunDemoBinary({"--inject", "kill-trainer"});
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.temporary_files, IsEmpty());
}

}  // namespace
}  // namespace weight_sync::demo
