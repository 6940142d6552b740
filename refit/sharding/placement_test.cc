// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/placement.h"

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

TEST(PlacementTest, ReadsWhatTorchPrints) {
  EXPECT_THAT(Placement::Parse("R"), IsOkAndHolds(Placement::Replicate()));
  EXPECT_THAT(Placement::Parse("Replicate()"), IsOkAndHolds(Placement::Replicate()));
  EXPECT_THAT(Placement::Parse("S(0)"), IsOkAndHolds(Placement::Shard(0)));
  EXPECT_THAT(Placement::Parse("S(-1)"), IsOkAndHolds(Placement::Shard(-1)));
  EXPECT_THAT(Placement::Parse("Shard(dim=2)"), IsOkAndHolds(Placement::Shard(2)));
  EXPECT_THAT(Placement::Parse("_S(0, 4)"), IsOkAndHolds(Placement::StridedShard(0, 4)));
  EXPECT_THAT(Placement::Parse("_StridedShard(dim=1, sf=8)"),
              IsOkAndHolds(Placement::StridedShard(1, 8)));
  EXPECT_THAT(Placement::Parse("P(sum)"), IsOkAndHolds(Placement::Partial()));
  EXPECT_THAT(Placement::Parse("Partial(avg)"), IsOkAndHolds(Placement::Partial()));
}

TEST(PlacementTest, ReadsWhatItPrints) {
  for (const Placement& placement : {Placement::Replicate(), Placement::Shard(3),
                                     Placement::StridedShard(1, 6), Placement::Partial()}) {
    EXPECT_THAT(Placement::Parse(placement.ToString()), IsOkAndHolds(placement));
  }
}

TEST(PlacementTest, RefusesAnythingElse) {
  for (const char* text : {"", "S", "S()", "S(a)", "S(0", "S(0, 2)", "_S(0)", "_S(0, )", "Q(0)",
                           "Replicate(1)", "R R", "_S(0, 1, 2)", "RX"}) {
    EXPECT_THAT(Placement::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no placement")))
        << text;
  }
}

}  // namespace
}  // namespace weight_sync::refit
