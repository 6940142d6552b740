// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/isolated.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::doctor {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(2)); }
base::Deadline Late() { return base::Deadline::After(absl::Minutes(1)); }

std::string Hang() {
  for (;;) ::pause();
}

// By the default action of the signal, without a word from a sanitizer and without a core.
std::string Die() {
  const rlimit none = {};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  return "alive";
}

TEST(RunIsolatedTest, AnswersInTheOrderOfTheFunctions) {
  const auto answers =
      RunIsolated({[] { return std::string("first"); }, [] { return std::string(); },
                   [] { return std::string("third"); }},
                  Late());
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_THAT(answers[0], IsOkAndHolds("first"));
  EXPECT_THAT(answers[1], IsOkAndHolds(""));
  EXPECT_THAT(answers[2], IsOkAndHolds("third"));
}

TEST(RunIsolatedTest, AnAnswerMayBeLargerThanAPipe) {
  const std::string large(3 << 20, 'x');
  const auto answers = RunIsolated({[&] { return std::string(large); }}, Late());
  EXPECT_THAT(answers[0], IsOkAndHolds(large));
}

TEST(RunIsolatedTest, OneThatHangsIsOverAtTheDeadlineAndSpoilsNoOther) {
  const absl::Time start = absl::Now();
  const auto answers = RunIsolated({Hang, [] { return std::string("well"); }}, Soon());
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("probe")));
  EXPECT_THAT(answers[1], IsOkAndHolds("well"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
}

TEST(RunIsolatedTest, OneThatDiesSaysHowAndSpoilsNoOther) {
  const auto answers = RunIsolated(
      {Die, [] { return std::string("well"); }, []() -> std::string { ::_exit(7); }}, Late());
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kInternal, HasSubstr("signal 11")));
  EXPECT_THAT(answers[1], IsOkAndHolds("well"));
  EXPECT_THAT(answers[2], StatusIs(absl::StatusCode::kInternal, HasSubstr("status 7")));
}

TEST(RunIsolatedTest, WhatAFunctionPrintsGoesNowhere) {
  testing::internal::CaptureStdout();
  const auto answers = RunIsolated({[] {
                                     std::puts("noise");
                                     std::fflush(stdout);
                                     return std::string("answer");
                                   }},
                                   Late());
  EXPECT_THAT(answers[0], IsOkAndHolds("answer"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(RunIsolatedTest, WhatAFunctionStartedIsKilledWithIt) {
  // The grandchild holds the only write end of this pipe, so reading ends when it is dead.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto answers = RunIsolated({[&]() -> std::string {
                                     if (::fork() == 0) Hang();
                                     return Hang();
                                   }},
                                   Soon());
  ::close(ends[1]);
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kDeadlineExceeded));
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace weight_sync::doctor
