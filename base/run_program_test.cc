// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/run_program.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::testing::HasSubstr;

TEST(RunProgramTest, GivesBothOutputsAndTheExitCode) {
  const ProgramResult result = RunProgram({"/bin/sh", "-c", "echo out; echo error >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerror\n");
}

TEST(RunProgramTest, RunsInAnotherDirectoryAndLeavesErrorsOut) {
  const ProgramResult result = RunProgram({"/bin/sh", "-c", "pwd; echo error >&2"},
                                          {/*directory=*/"/usr", /*errors=*/false});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "/usr\n");
}

TEST(RunProgramTest, GivesMoreThanAPipeHolds) {
  const ProgramResult result = RunProgram({"/bin/sh", "-c", "head -c 300000 /dev/zero"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.size(), 300000);
}

TEST(RunProgramTest, SaysWhichSignalEndedIt) {
  const ProgramResult result = RunProgram({"/bin/sh", "-c", "kill -9 $$"});
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_THAT(result.output, HasSubstr("signal 9"));
}

TEST(RunProgramTest, SaysWhatItCouldNotStart) {
  const ProgramResult result = RunProgram({"/nowhere/program"});
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_THAT(result.output, HasSubstr("/nowhere/program: No such file"));
}

}  // namespace
}  // namespace weight_sync::base
