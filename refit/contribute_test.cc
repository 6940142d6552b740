// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/contribute.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/device.h"
#include "refit/read_guard.h"
#include "refit/refit_source.h"
#include "refit/version.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::testing::ElementsAre;

// Notes its calls, of which one may fail.
class NotingProgram : public Program {
 public:
  explicit NotingProgram(std::string failing = "") : failing_(std::move(failing)) {}
  const std::vector<std::string>& calls() const { return calls_; }

  absl::StatusOr<ReadGuard> Begin(Version version, const base::CancelScope&) override {
    if (absl::Status status = Note(absl::StrCat("begin ", version)); !status.ok()) return status;
    return ReadGuard(std::make_unique<Reading>(this));
  }
  absl::StatusOr<Event> Fill(int bucket, const DeviceSpan& dst, Stream&) override {
    EXPECT_EQ(dst.data, nullptr);
    if (absl::Status status = Note(absl::StrCat("fill ", bucket)); !status.ok()) return status;
    return Event::Complete();
  }

 private:
  class Reading : public ReadGuard::Reading {
   public:
    explicit Reading(NotingProgram* program) : program_(program) {}
    ~Reading() override { program_->Note("end").IgnoreError(); }
    absl::Status Unchanged() override { return program_->Note("unchanged"); }

   private:
    NotingProgram* const program_;
  };

  absl::Status Note(const std::string& call) {
    calls_.push_back(call);
    return call == failing_ ? absl::AbortedError(call) : absl::OkStatus();
  }

  const std::string failing_;
  std::vector<std::string> calls_;
};

class ContributeTest : public ::testing::Test {
 protected:
  const base::CancelScope scope_{base::Deadline::After(absl::Minutes(1))};
};

TEST_F(ContributeTest, MakesEveryCallOfASyncInOrder) {
  NotingProgram program;
  int begun = 0;
  EXPECT_THAT(Contribute(program, 3, /*version=*/7, scope_,
                         [&](const ReadGuard& guard) {
                           ++begun;
                           EXPECT_TRUE(guard.blocks_trainer());
                           EXPECT_THAT(program.calls(), ElementsAre("begin 7"));
                         }),
              IsOk());
  EXPECT_EQ(begun, 1);
  EXPECT_THAT(program.calls(),
              ElementsAre("begin 7", "fill 0", "fill 1", "fill 2", "unchanged", "end"));
}

TEST_F(ContributeTest, EndsWithTheFirstErrorAndItsReading) {
  for (const std::string failing : {"begin 7", "fill 1", "unchanged"}) {
    NotingProgram program(failing);
    EXPECT_EQ(Contribute(program, 3, 7, scope_), absl::AbortedError(failing));
    EXPECT_EQ(program.calls().back(), failing == "begin 7" ? failing : "end");
    EXPECT_EQ(program.calls()[program.calls().size() - (failing == "begin 7" ? 1 : 2)], failing);
  }
}

}  // namespace
}  // namespace weight_sync::refit
