// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/plan_agreement.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Left = absl::StatusOr<std::vector<int>>;

constexpr int kProcesses = 4;
constexpr size_t kTensors = 6;

class PlanAgreementTest : public ::testing::Test {
 protected:
  PlanAgreementTest() : communicators_(MakeThreadCommunicators(kProcesses).value()) {
    PlanAgreement::Digests digests = {{1, 2}, {}};
    for (size_t t = 0; t < kTensors; ++t) digests.by_trainer.push_back({100 + t, ~uint64_t{0} - t});
    digests_.assign(kProcesses, digests);
  }

  void Make() {
    agreements_.clear();
    for (const auto& digests : digests_) agreements_.emplace_back(digests);
  }

  // Of each process, in a round of its own.
  std::vector<Left> Agree() {
    std::vector<Left> left(kProcesses);
    std::vector<std::thread> threads;
    for (size_t p = 0; p < kProcesses; ++p) {
      threads.emplace_back([&, p] {
        Communicator& communicator = *communicators_[p];
        const base::CancelScope scope(base::Deadline::After(absl::Minutes(1)));
        if (absl::Status begun = communicator.BeginRound(1, absl::OkStatus(), scope); !begun.ok()) {
          left[p] = begun;
          return;
        }
        left[p] = agreements_[p].Agree(
            communicator, [&](int trainer, int process) { return on_mesh_(trainer, process); },
            [](int trainer) { return absl::StrCat("tensor ", trainer); }, scope);
        const absl::Status ended = communicator.EndRound(left[p].status(), scope);
        if (!ended.ok()) left[p] = ended;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return left;
  }

  std::vector<PlanAgreement::Digests> digests_;
  std::function<bool(int, int)> on_mesh_ = [](int, int) { return false; };
  std::vector<PlanAgreement> agreements_;
  const std::vector<std::unique_ptr<Communicator>> communicators_;
};

TEST_F(PlanAgreementTest, ProcessesThatAreAlikeLeaveNothing) {
  Make();
  for (int sync = 0; sync < 3; ++sync) EXPECT_THAT(Agree(), Each(IsOkAndHolds(IsEmpty())));
}

TEST_F(PlanAgreementTest, ProcessesOffTheMeshLeaveWhatTheyDeclareOtherwiseOnce) {
  for (const size_t p : {1, 3}) digests_[p].by_trainer[5].low = 7;
  digests_[3].by_trainer[2].high = 7;
  Make();
  EXPECT_THAT(Agree(), ElementsAre(IsOkAndHolds(IsEmpty()), IsOkAndHolds(ElementsAre(5)),
                                   IsOkAndHolds(IsEmpty()), IsOkAndHolds(ElementsAre(2, 5))));
  EXPECT_THAT(Agree(), Each(IsOkAndHolds(IsEmpty())));

  // One that is made anew, as by another compilation.
  agreements_[3] = PlanAgreement(digests_[3]);
  EXPECT_THAT(Agree()[3], IsOkAndHolds(ElementsAre(2, 5)));
  agreements_[0] = PlanAgreement(digests_[0]);
  EXPECT_THAT(Agree(), Each(IsOkAndHolds(IsEmpty())));
}

TEST_F(PlanAgreementTest, ProcessesOnTheMeshThatDeclareOtherwiseAreNamedWithTheTensors) {
  for (const size_t p : {1, 2}) digests_[p].by_trainer[4].low = 7;
  on_mesh_ = [](int, int process) { return process == 2; };
  Make();
  const auto named =
      AllOf(HasSubstr("'tensor 4' by process 2"), ::testing::Not(HasSubstr("process 1")));
  EXPECT_THAT(Agree(), Each(StatusIs(absl::StatusCode::kFailedPrecondition, named)));
  EXPECT_THAT(Agree(), Each(StatusIs(absl::StatusCode::kFailedPrecondition, named))) << "again";
  digests_[2] = digests_[0];
  agreements_[2] = PlanAgreement(digests_[2]);
  EXPECT_THAT(Agree()[1], IsOkAndHolds(ElementsAre(4)));
}

// Of whatever else differs there may be another number of tensors.
TEST_F(PlanAgreementTest, ProcessesOfAnotherFrameAreNamed) {
  digests_[3].frame.low = 7;
  digests_[3].by_trainer.resize(1);
  Make();
  EXPECT_THAT(Agree(),
              Each(StatusIs(absl::StatusCode::kFailedPrecondition,
                            AllOf(HasSubstr("made for another model"), HasSubstr("process 3"),
                                  ::testing::Not(HasSubstr("process 1"))))));
}

}  // namespace
}  // namespace weight_sync::refit
