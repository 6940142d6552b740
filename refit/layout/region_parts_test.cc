// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_parts.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/axis_pattern.h"
#include "refit/testing/random_regions.h"

namespace weight_sync::refit {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

RegionTemplate Relate(const char* a, const char* b, const AxisSizes& sizes) {
  return RegionTemplate::Create(*AxisPattern::Parse(a), *AxisPattern::Parse(b), sizes).value();
}

int64_t Place(const Region::Side& side, const std::array<int64_t, Region::kMaxAxes>& index,
              int axes, const Shape& shape) {
  std::vector<int64_t> at(side.begin.begin(), side.begin.begin() + side.rank);
  for (int axis = 0; axis < axes; ++axis) {
    at[static_cast<size_t>(side.dim[axis])] += index[axis] * side.step[axis];
  }
  int64_t place = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    place = place * shape[dim] + at[static_cast<size_t>(dim)];
  }
  return place;
}

// Row-major numbers of the paired elements, in A and in B.
void AppendPairs(const Region& region, const Shape& a, const Shape& b, Pairs& out) {
  std::array<int64_t, Region::kMaxAxes> index = {};
  for (int64_t i = 0; i < region.num_elements(); ++i) {
    out.emplace_back(Place(region.a, index, region.axes, a),
                     Place(region.b, index, region.axes, b));
    for (int axis = region.axes - 1; axis >= 0 && ++index[axis] == region.size[axis]; --axis) {
      index[axis] = 0;
    }
  }
}

bool Contains(const Box& box, int64_t place, const Shape& shape) {
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    const int64_t at = place % shape[dim];
    if (at < box.begin[dim] || at >= box.begin[dim] + box.size[dim]) return false;
    place /= shape[dim];
  }
  return true;
}

// Against every pair of elements, by brute force, for random patterns and random boxes.
TEST(RegionPartsTest, HoldExactlyThePairsWhoseBElementsAreInTheBox) {
  std::mt19937 rng(20261130);
  int empty = 0, several = 0;
  for (int round = 0; round < 3000; ++round) {
    const testing::RandomRelation random = testing::MakeRandomRelation(rng);
    const RegionTemplate relation =
        Relate(random.a_text.c_str(), random.b_text.c_str(), random.sizes);
    const Shape& b = random.b_shape;
    Box box = Box::Whole(b);
    for (int dim = 0; dim < b.rank(); ++dim) {
      const int64_t begin = std::uniform_int_distribution<int64_t>(0, b[dim])(rng);
      box.begin[dim] = begin;
      box.size[dim] = std::uniform_int_distribution<int64_t>(0, b[dim] - begin)(rng);
    }
    for (const auto& indices : random.Combinations()) {
      std::vector<int64_t> values;
      for (const std::string& name : relation.index_names()) values.push_back(indices.at(name));
      Pairs expected;
      for (const auto& pair : random.Pairs(indices)) {
        if (Contains(box, pair.second, b)) expected.push_back(pair);
      }
      std::vector<Region> parts;
      AppendPartsInB(relation.At(values), box, parts);
      Pairs found;
      for (const Region& part : parts) AppendPairs(part, random.a_shape, b, found);
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected) << random.a_text << " | " << random.b_text << " in "
                                 << box.ToString();
      empty += parts.empty() ? 1 : 0;
      several += parts.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(empty, 50);
  EXPECT_GT(several, 50);
}

TEST(RegionPartsTest, RowsOfAProjectionStayOnePart) {
  const RegionTemplate same = Relate("(n d) h", "(n d) h", {{"n", 4}, {"d", 8}, {"h", 16}});
  Box rows = Box::Whole(Shape{32, 16});
  rows.begin[0] = 5;  // in the middle of a head
  rows.size[0] = 13;
  std::vector<Region> parts;
  AppendPartsInB(same.At({}), rows, parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].a.begin[0], 5);
  EXPECT_EQ(parts[0].num_elements(), 13 * 16);
}

TEST(RegionPartsTest, AnExpertOfAnotherRankHasNone) {
  const RegionTemplate expert = Relate("m h", "{e} h m", {{"e", 4}, {"m", 2}, {"h", 3}});
  Box first_two = Box::Whole(Shape{4, 3, 2});
  first_two.size[0] = 2;
  std::vector<Region> parts;
  AppendPartsInB(expert.At({2}), first_two, parts);
  EXPECT_TRUE(parts.empty());
  AppendPartsInB(expert.At({1}), first_two, parts);
  EXPECT_EQ(parts.size(), 1u);
}

}  // namespace
}  // namespace weight_sync::refit
