// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/compiled_refit.h"

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "fakes/seeded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/packing/packer.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"
#include "refit/tensor/dtype.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;

TEST(CompiledRefitTest, CompilesAnewOnlyForAnotherGeometry) {
  const auto info = refit::RefitInfo::Create({{"a", {1000}, refit::DType::kF32}}).value();
  const auto policy = fakes::SeededPolicy::Create(info, /*seed=*/1).value();
  CompiledRefit refit;
  ASSERT_THAT(refit.CompileFor(policy->source(), {1024, 64}), IsOk());
  const refit::Program* const program = &refit.program();
  EXPECT_EQ(refit.buckets().size(), 4u);
  EXPECT_EQ(refit.plan(), refit::PlanDigest(refit.buckets()));
  ASSERT_THAT(refit.CompileFor(policy->source(), {1024, 64}), IsOk());
  EXPECT_EQ(&refit.program(), program);

  ASSERT_THAT(refit.CompileFor(policy->source(), {512, 64}), IsOk());
  EXPECT_EQ(refit.buckets().size(), 8u);
  EXPECT_THAT(refit.CompileFor(policy->source(), {512, 7}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(refit.CompileFor(policy->source(), {1024, 64}), IsOk());
  EXPECT_EQ(refit.buckets().size(), 4u);
}

}  // namespace
}  // namespace weight_sync
