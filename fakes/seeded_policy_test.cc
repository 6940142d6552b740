// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/seeded_policy.h"

#include <memory>
#include <utility>

#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;

refit::RefitInfo Info() {
  return *refit::RefitInfo::Create(
      {{"a", {30, 7}, refit::DType::kBF16}, {"b", {41}, refit::DType::kF32}});
}

base::Digest128 DigestOfTensor(SeededPolicy& policy, int tensor) {
  return *policy.source().ReferenceDigest(tensor);
}

TEST(SeededPolicyTest, EqualSeedsAndStepsGiveEqualBytes) {
  auto a = SeededPolicy::Create(Info(), 7), b = SeededPolicy::Create(Info(), 7),
       c = SeededPolicy::Create(Info(), 8);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  ASSERT_THAT(c, IsOk());
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ((*a)->steps(), step);
    for (int t = 0; t < 2; ++t) {
      EXPECT_EQ(DigestOfTensor(**a, t), DigestOfTensor(**b, t));
      EXPECT_NE(DigestOfTensor(**a, t), DigestOfTensor(**c, t));
    }
    (*a)->Step();
    (*b)->Step();
    (*c)->Step();
  }
}

TEST(SeededPolicyTest, AStepChangesEveryTensorAndTheReadGuardSeesIt) {
  auto policy = SeededPolicy::Create(Info(), 7);
  ASSERT_THAT(policy, IsOk());
  auto program = (*policy)->source().Compile({});
  ASSERT_THAT(program, IsOk());
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  auto guard = (*program)->Begin(0, scope);
  ASSERT_THAT(guard, IsOk());
  EXPECT_THAT(guard->Unchanged(), IsOk());
  const base::Digest128 a = DigestOfTensor(**policy, 0), b = DigestOfTensor(**policy, 1);
  (*policy)->Step();
  EXPECT_NE(DigestOfTensor(**policy, 0), a);
  EXPECT_NE(DigestOfTensor(**policy, 1), b);
  EXPECT_THAT(guard->Unchanged(), StatusIs(absl::StatusCode::kAborted));
}

TEST(SeededPolicyTest, StartsFromGivenParameters) {
  auto parameters = Parameters::Create(Info());
  ASSERT_THAT(parameters, IsOk());
  parameters->FillBytes(3);
  auto policy = SeededPolicy::Create(*std::move(parameters), 7);
  ASSERT_THAT(policy, IsOk());
  EXPECT_EQ((*policy)->parameters().view(1).data()[5], std::byte{3});
}

TEST(SeededPolicyTest, CountsItsMemoryPhasesAndAnswersAsTold) {
  auto policy = SeededPolicy::Create(Info(), 7);
  ASSERT_THAT(policy, IsOk());
  EXPECT_THAT((*policy)->OffloadBeforeRefit(), IsOk());
  (*policy)->offload_after_status = absl::InternalError("no memory");
  EXPECT_THAT((*policy)->OffloadAfterRefit(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ((*policy)->offloads_before, 1);
  EXPECT_EQ((*policy)->offloads_after, 1);
}

}  // namespace
}  // namespace weight_sync::fakes
