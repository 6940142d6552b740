// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/status_macros.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;

absl::Status Step(const absl::Status& status, int& steps) {
  WS_RETURN_IF_ERROR(status);
  ++steps;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Twice(absl::StatusOr<std::string> text) {
  WS_ASSIGN_OR_RETURN(const std::string first, text);
  std::string second;
  WS_ASSIGN_OR_RETURN(second, std::move(text));
  return first + second;
}

absl::StatusOr<int> Unwrap(absl::StatusOr<std::unique_ptr<int>> pointer) {
  WS_ASSIGN_OR_RETURN(std::unique_ptr<int> moved, std::move(pointer));
  return *moved;
}

TEST(StatusMacrosTest, ReturnIfErrorGoesOnAfterOkAndReturnsAnError) {
  int steps = 0;
  EXPECT_THAT(Step(absl::OkStatus(), steps), IsOk());
  EXPECT_EQ(steps, 1);
  EXPECT_THAT(Step(absl::AbortedError("stop"), steps),
              StatusIs(absl::StatusCode::kAborted, "stop"));
  EXPECT_EQ(steps, 1);
}

TEST(StatusMacrosTest, AssignOrReturnDeclaresAssignsAndMoves) {
  EXPECT_THAT(Twice("ab"), IsOkAndHolds("abab"));
  EXPECT_THAT(Twice(absl::NotFoundError("no text")),
              StatusIs(absl::StatusCode::kNotFound, "no text"));
  EXPECT_THAT(Unwrap(std::make_unique<int>(7)), IsOkAndHolds(7));
}

TEST(PrefixedTest, KeepsCodeAndPayloads) {
  absl::Status status = absl::UnavailableError("gone");
  status.SetPayload("url", absl::Cord("payload"));
  const absl::Status prefixed = Prefixed("engine 0", status);
  EXPECT_THAT(prefixed, StatusIs(absl::StatusCode::kUnavailable, "engine 0: gone"));
  EXPECT_EQ(prefixed.GetPayload("url"), absl::Cord("payload"));
  EXPECT_THAT(Prefixed("engine 0", absl::OkStatus()), IsOk());
}

TEST(ThenTest, IsTheFirstErrorWithTheTextOfTheNext) {
  const absl::Status first = absl::UnavailableError("gone"), next = absl::InternalError("stuck");
  EXPECT_THAT(Then(absl::OkStatus(), "closing", absl::OkStatus()), IsOk());
  EXPECT_THAT(Then(first, "closing", absl::OkStatus()),
              StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_THAT(Then(absl::OkStatus(), "closing", next),
              StatusIs(absl::StatusCode::kInternal, "closing: stuck"));
  EXPECT_THAT(Then(first, "closing", next),
              StatusIs(absl::StatusCode::kUnavailable, "gone; then closing: stuck"));
}

}  // namespace
}  // namespace weight_sync::base
