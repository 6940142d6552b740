// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/mesh.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(MeshTest, RanksCountInRowMajorOrder) {
  const Mesh mesh = Mesh::Create({{"dp", 2}, {"ep", 1}, {"tp", 3}}).value();
  EXPECT_THAT(mesh.CoordinateOf(0), Optional(ElementsAre(0, 0, 0)));
  EXPECT_THAT(mesh.CoordinateOf(2), Optional(ElementsAre(0, 0, 2)));
  EXPECT_THAT(mesh.CoordinateOf(3), Optional(ElementsAre(1, 0, 0)));
  EXPECT_THAT(mesh.CoordinateOf(5), Optional(ElementsAre(1, 0, 2)));
  EXPECT_EQ(mesh.CoordinateOf(6), std::nullopt);
  EXPECT_EQ(mesh.CoordinateOf(-1), std::nullopt);
  EXPECT_THAT(mesh.FindDim("tp"), Optional(2));
  EXPECT_EQ(mesh.FindDim("pp"), std::nullopt);
  EXPECT_EQ(mesh.ToString(), "dp=2, ep=1, tp=3");
}

TEST(MeshTest, MayHoldAPartOfTheRanksInAnyOrder) {
  const Mesh mesh = Mesh::Create({{"dp", 2}, {"tp", 2}}, {6, 4, 7, 5}).value();
  EXPECT_THAT(mesh.CoordinateOf(4), Optional(ElementsAre(0, 1)));
  EXPECT_THAT(mesh.CoordinateOf(7), Optional(ElementsAre(1, 0)));
  EXPECT_EQ(mesh.CoordinateOf(0), std::nullopt);
}

TEST(MeshTest, WhatIsNoMeshIsRefusedWithTheReason) {
  const auto refused = [](std::vector<Mesh::Dim> dims, std::vector<int> ranks, const char* why) {
    EXPECT_THAT(Mesh::Create(std::move(dims), std::move(ranks)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({{"dp", 0}}, {}, "'dp' has size 0");
  refused({{"", 2}}, {}, "dimension 0 has no name");
  refused({{"dp", 2}, {"dp", 2}}, {}, "'dp' is twice");
  refused({{"dp", 2}}, {0, 1, 2}, "3 ranks for 2 places");
  refused({{"dp", 2}}, {3, 3}, "rank 3 is twice");
  refused({{"dp", 2}}, {0, -1}, "rank -1");
  refused({{"dp", 1 << 20}, {"tp", 1 << 20}}, {}, "more than 2^31 ranks");
}

}  // namespace
}  // namespace weight_sync::refit
