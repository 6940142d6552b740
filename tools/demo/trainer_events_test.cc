// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/trainer_events.h"

#include <string>
#include <variant>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::demo {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

// What comes out of a line writes the same line.
std::string Again(const std::string& line) { return EventToLine(EventFromLine(line).value()); }

TEST(TrainerEventsTest, EventsCrossAsLines) {
  StepReport step;
  step.step = 4;
  step.trained = 2;
  step.version = 3;
  step.stale_before = true;
  step.answered = true;
  const std::string idle = EventToLine(step);
  step.sync.emplace();
  step.sync->version = 3;
  step.sync->tensors = 101;
  step.sync->bytes = 1;
  step.sync->buckets = 2;
  step.sync->seconds = 0.1;
  step.sync->trainer_blocked_seconds = 0.2;
  step.sync->engine_paused_seconds = 0.3;
  step.sync->transfer_seconds = 0.4;
  step.sync->verification_seconds = 0.5;
  step.sync->verification = Verification::kEqual;
  const std::string synced = EventToLine(step);
  EXPECT_NE(idle, synced);
  for (const std::string& line : {idle, synced, EventToLine(TrainerSetup{1.5, 2, 3.5}),
                                  EventToLine(Progress{1, "transferring", 2, 3}),
                                  EventToLine(absl::DataLossError("two\nlines, \"quotes\"")),
                                  EventToLine(absl::DataLossError("not UTF-8: \xff"))}) {
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(Again(line), line);
  }
  const TrainerEvent failed = EventFromLine(EventToLine(absl::DataLossError("x"))).value();
  EXPECT_EQ(std::get<absl::Status>(failed), absl::DataLossError("x"));
}

TEST(TrainerEventsTest, AnythingElseIsAnErrorThatShowsTheLine) {
  for (const char* line : {"", "hello", "{}", R"({"event":"step"})", R"({"event":"dance"})"}) {
    EXPECT_THAT(EventFromLine(line), StatusIs(absl::StatusCode::kInternal, HasSubstr("trainer")));
  }
}

}  // namespace
}  // namespace weight_sync::demo
