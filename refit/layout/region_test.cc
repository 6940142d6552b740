// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/testing/random_regions.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeRandomRelation;
using testing::RandomRelation;

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

absl::StatusOr<RegionTemplate> Relate(absl::string_view a, absl::string_view b,
                                      const AxisSizes& sizes) {
  return RegionTemplate::Create(AxisPattern::Parse(a).value(), AxisPattern::Parse(b).value(),
                                sizes);
}

int64_t FlatAt(const Region::Side& side, const Shape& shape, const Region& region,
               const std::vector<int64_t>& index) {
  std::vector<int64_t> at(side.begin.begin(), side.begin.begin() + side.rank);
  for (int axis = 0; axis < region.axes; ++axis) {
    at[static_cast<size_t>(side.dim[axis])] += side.step[axis] * index[static_cast<size_t>(axis)];
  }
  int64_t flat = 0;
  for (int dim = 0; dim < side.rank; ++dim) flat = flat * shape[dim] + at[static_cast<size_t>(dim)];
  return flat;
}

// The pairs of the region, in its own order.
Pairs PairsOf(const Region& region, const Shape& a, const Shape& b) {
  Pairs pairs;
  std::vector<int64_t> index(static_cast<size_t>(region.axes));
  for (int64_t i = 0; i < region.num_elements(); ++i) {
    int64_t rest = i;
    for (int axis = region.axes - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = rest % region.size[axis];
      rest /= region.size[axis];
    }
    pairs.emplace_back(FlatAt(region.a, a, region, index), FlatAt(region.b, b, region, index));
  }
  return pairs;
}

std::vector<int64_t> ValuesFor(const RegionTemplate& region,
                               const std::map<std::string, int64_t>& indices) {
  std::vector<int64_t> values;
  for (const std::string& name : region.index_names()) values.push_back(indices.at(name));
  return values;
}

TEST(RegionTest, PairsEqualBruteForceAndComeInTheOrderOfA) {
  std::mt19937 rng(1);
  for (int round = 0; round < 500; ++round) {
    const RandomRelation random = MakeRandomRelation(rng);
    SCOPED_TRACE(random.a_text + " <-> " + random.b_text);
    const absl::StatusOr<RegionTemplate> related =
        Relate(random.a_text, random.b_text, random.sizes);
    ASSERT_THAT(related, IsOk());
    EXPECT_EQ(related->a_shape(), random.a_shape);
    EXPECT_EQ(related->b_shape(), random.b_shape);
    for (const auto& indices : random.Combinations()) {
      const Region region = related->At(ValuesFor(*related, indices));
      Pairs expected = random.Pairs(indices);
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(PairsOf(region, random.a_shape, random.b_shape), expected);

      Pairs exchanged;
      for (const auto& [a, b] : expected) exchanged.emplace_back(b, a);
      std::sort(exchanged.begin(), exchanged.end());
      const Region inverted = region.Inverted();
      ASSERT_EQ(PairsOf(inverted, random.b_shape, random.a_shape), exchanged);
      ASSERT_EQ(PairsOf(inverted.Inverted(), random.a_shape, random.b_shape), expected);
    }
  }
}

TEST(RegionTest, MergedDimensionsAreTheFamiliarReshapes) {
  // q_proj: HF[n * D + d, h] = X[h, n, d].
  const absl::StatusOr<RegionTemplate> query =
      Relate("(n d) h", "h n d", {{"n", 3}, {"d", 4}, {"h", 5}});
  ASSERT_THAT(query, IsOk());
  for (const auto& [hf, x] : PairsOf(query->At({}), {12, 5}, {5, 3, 4})) {
    const int64_t row = hf / 5, h = hf % 5, n = row / 4, d = row % 4;
    EXPECT_EQ(x, (h * 3 + n) * 4 + d);
  }
}

TEST(RegionTest, RefusesPatternsThatDoNotPair) {
  EXPECT_THAT(Relate("a b", "a", {{"a", 2}, {"b", 2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'b'"), HasSubstr("'a b'"), HasSubstr("'a'"))));
  EXPECT_THAT(Relate("a", "a b", {{"a", 2}, {"b", 2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("axis 'b' is in one")));
  EXPECT_THAT(Relate("a b", "b a", {{"a", 2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a b': 'b' has no size")));
  EXPECT_THAT(Relate("a", "{e} a", {{"a", 2}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'e' has no size")));
  EXPECT_THAT(Relate("a", "a", {{"a", 0}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a' has size 0")));
  EXPECT_THAT(Relate("(a b c)", "a b c", {{"a", 1 << 30}, {"b", 1 << 30}, {"c", 1 << 30}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^63")));
}

TEST(RegionTest, IndicesComeInOrderOfAppearance) {
  const absl::StatusOr<RegionTemplate> region =
      Relate("{e} m", "{b} ({e} {k}) m", {{"e", 2}, {"b", 3}, {"k", 4}, {"m", 5}});
  ASSERT_THAT(region, IsOk());
  EXPECT_THAT(region->index_names(), ElementsAre("e", "b", "k"));
  const Region at = region->At({1, 2, 3});
  EXPECT_EQ(at.a.begin[0], 1);
  EXPECT_EQ(at.b.begin[0], 2);
  EXPECT_EQ(at.b.begin[1], 1 * 4 + 3);
}

TEST(CheckCoversOnceTest, AgreesWithCounting) {
  std::mt19937 rng(2);
  int covered = 0, missed = 0, doubled = 0;
  for (int round = 0; round < 800; ++round) {
    const RandomRelation random = MakeRandomRelation(rng);
    const RegionTemplate related = Relate(random.a_text, random.b_text, random.sizes).value();
    std::vector<Region> regions;
    for (const auto& indices : random.Combinations()) {
      // Sides that lack an index see the same elements for each of its values: leave most out.
      if (rng() % 4 == 0) continue;
      regions.push_back(related.At(ValuesFor(related, indices)));
    }
    for (const bool inverted : {false, true}) {
      const Shape& a = inverted ? random.b_shape : random.a_shape;
      const Shape& b = inverted ? random.a_shape : random.b_shape;
      if (inverted) {
        for (Region& region : regions) region = region.Inverted();
      }
      std::vector<int> count(static_cast<size_t>(a.num_elements()));
      for (const Region& region : regions) {
        for (const auto& [element, other] : PairsOf(region, a, b)) {
          ++count[static_cast<size_t>(element)];
        }
      }
      const bool hole = std::count(count.begin(), count.end(), 0) > 0;
      const bool twice = std::any_of(count.begin(), count.end(), [](int n) { return n > 1; });
      const absl::Status status = CheckCoversOnce(a, regions);
      EXPECT_EQ(status.ok(), !hole && !twice) << random.a_text << " " << status;
      if (!status.ok()) {
        EXPECT_TRUE(hole || twice);
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     ::testing::AnyOf(HasSubstr("no counterpart"),
                                                      HasSubstr("counterparts"))));
      }
      covered += !hole && !twice;
      missed += hole;
      doubled += twice;
    }
  }
  EXPECT_GT(covered, 50);
  EXPECT_GT(missed, 50);
  EXPECT_GT(doubled, 50);
}

TEST(CheckCoversOnceTest, NamesTheElement) {
  const AxisSizes sizes = {{"e", 3}, {"m", 4}};
  const RegionTemplate expert = Relate("{e} m", "m", sizes).value();
  EXPECT_THAT(
      CheckCoversOnce({3, 4}, {expert.At({0}), expert.At({2})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element [1, 0] has no counterpart")));
  EXPECT_THAT(
      CheckCoversOnce({3, 4}, {expert.At({0}), expert.At({1}), expert.At({2}), expert.At({1})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element [1, 0] has 2 counterparts")));
  EXPECT_THAT(CheckCoversOnce({2, 4}, {expert.At({0}), expert.At({1}), expert.At({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element [2, 0] is outside")));
  EXPECT_THAT(
      CheckCoversOnce({3, 5}, {expert.At({0}), expert.At({1}), expert.At({2})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element [0, 4] has no counterpart")));
  EXPECT_THAT(CheckCoversOnce({3, 4}, {expert.At({0}), expert.At({1}), expert.At({2})}), IsOk());
  EXPECT_THAT(CheckCoversOnce({3, 0}, {}), IsOk());
  EXPECT_THAT(CheckCoversOnce({}, {}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace weight_sync::refit
