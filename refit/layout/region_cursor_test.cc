// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_cursor.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "refit/layout/axis_pattern.h"
#include "refit/testing/random_regions.h"

namespace weight_sync::refit {
namespace {

// Against every pair of elements, by brute force, with B's dimensions in reverse order in memory.
TEST(RegionCursorTest, WalksThePairsInTheOrderOfA) {
  std::mt19937 rng(4);
  for (int round = 0; round < 300; ++round) {
    const testing::RandomRelation random = testing::MakeRandomRelation(rng);
    SCOPED_TRACE(random.a_text + " <-> " + random.b_text);
    const RegionTemplate relation =
        RegionTemplate::Create(AxisPattern::Parse(random.a_text).value(),
                               AxisPattern::Parse(random.b_text).value(), random.sizes)
            .value();
    const Shape& b = random.b_shape;
    std::vector<int64_t> strides;
    int64_t stride = 1;
    for (int dim = 0; dim < b.rank(); ++dim) {
      strides.push_back(stride);
      stride *= b[dim];
    }
    for (const auto& indices : random.Combinations()) {
      std::vector<int64_t> values;
      for (const std::string& name : relation.index_names()) values.push_back(indices.at(name));
      const Region region = relation.At(values);
      auto expected = random.Pairs(indices);
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(region.num_elements(), static_cast<int64_t>(expected.size()));
      RegionCursor cursor(region, random.a_shape, strides);
      for (int twice = 0; twice < 2; ++twice) {
        for (const auto& [a, b_number] : expected) {
          ASSERT_EQ(cursor.a_place(), a);
          int64_t number = 0, offset = 0;
          for (int dim = 0; dim < b.rank(); ++dim) {
            const size_t d = static_cast<size_t>(dim);
            number = number * b[dim] + cursor.b_index()[d];
            offset += cursor.b_index()[d] * strides[d];
          }
          ASSERT_EQ(number, b_number);
          ASSERT_EQ(cursor.b_offset(), offset);
          cursor.Advance();
        }
      }
    }
  }
}

}  // namespace
}  // namespace weight_sync::refit
