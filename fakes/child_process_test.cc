// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/child_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;

constexpr char kEcho[] = "--echo";
constexpr char kLeave[] = "--leave";

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(30)); }

TEST(ChildProcessTest, TheChildGetsItsConfigurationAndReports) {
  // Longer than a pipe holds, so that both ends must keep going.
  const std::string config = absl::StrCat(std::string(200000, 'x'), "\nend");
  auto child = ChildProcess::Start(kEcho, config);
  ASSERT_THAT(child, IsOk());
  EXPECT_NE(child->pid(), ::getpid());
  EXPECT_THAT(child->ReadLine(Soon()), IsOkAndHolds(std::string(200000, 'x')));
  EXPECT_THAT(child->ReadLine(Soon()), IsOkAndHolds("end"));
}

TEST(ChildProcessTest, ItEndsWhenItsInputIsClosed) {
  auto child = ChildProcess::Start(kEcho, "hello");
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT(child->Wait(base::Deadline::After(absl::ZeroDuration())),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  child->CloseInput();
  const auto status = child->Wait(Soon());
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(DescribeWaitStatus(*status), "exited with 3");
  EXPECT_THAT(child->Wait(Soon()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ChildProcessTest, AKilledChildIsSeenAndReapedOnce) {
  auto child = ChildProcess::Start(kEcho, "hello");
  ASSERT_THAT(child, IsOk());
  child->Kill(SIGKILL);
  const auto status = child->Wait(Soon());
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(DescribeWaitStatus(*status), "killed by signal 9");
  child->Kill(SIGKILL);  // nobody: the pid may be another's by now
}

TEST(ChildProcessTest, NoMoreLinesFromAChildThatEnded) {
  auto child = ChildProcess::Start(kLeave, "");
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT(child->ReadLine(Soon()), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(ChildProcessTest, ReadingALineEndsAtTheDeadline) {
  auto child = ChildProcess::Start(kEcho, "one");
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT(child->ReadLine(Soon()), IsOkAndHolds("one"));
  EXPECT_THAT(child->ReadLine(base::Deadline::After(absl::Milliseconds(1))),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(ChildProcessTest, MovingKeepsTheChildAndTheDestructorLeavesNone) {
  auto first = ChildProcess::Start(kEcho, "first");
  auto second = ChildProcess::Start(kEcho, "second");
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  {
    ChildProcess moved = *std::move(first);
    EXPECT_THAT(moved.ReadLine(Soon()), IsOkAndHolds("first"));
    moved = *std::move(second);
    EXPECT_THAT(moved.ReadLine(Soon()), IsOkAndHolds("second"));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace weight_sync::fakes

int main(int argc, char** argv) {
  using weight_sync::fakes::ChildConfig;
  if (argc == 2 && argv[1] == std::string(weight_sync::fakes::kEcho)) {
    weight_sync::fakes::ReportLine(ChildConfig());
    weight_sync::fakes::WaitForParent();
    return 3;
  }
  if (argc == 2 && argv[1] == std::string(weight_sync::fakes::kLeave)) return 0;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
