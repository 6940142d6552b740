// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/refit_info.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RefitInfo Info(std::vector<TensorSpec> tensors) {
  return RefitInfo::Create(std::move(tensors)).value();
}

TEST(RefitInfoTest, KeepsOrderAndFindsByName) {
  const RefitInfo info = Info({{"z", {2, 3}, DType::kBF16}, {"a", {}, DType::kF32}});
  EXPECT_EQ(info.size(), 2);
  EXPECT_EQ(info[0].name, "z");
  EXPECT_EQ(info[0].bytes(), 12);
  EXPECT_EQ(info[1].name, "a");
  EXPECT_EQ(info[1].bytes(), 4);
  EXPECT_EQ(info.total_bytes(), 16);
  EXPECT_EQ(info.Find("a"), std::optional<int>(1));
  EXPECT_EQ(info.Find("z"), std::optional<int>(0));
  EXPECT_EQ(info.Find("A"), std::nullopt);
  EXPECT_EQ(info.Find(""), std::nullopt);
}

TEST(RefitInfoTest, TensorsWithoutElementsCount) {
  const RefitInfo info = Info({{"empty", {4, 0}, DType::kF32}});
  EXPECT_EQ(info.size(), 1);
  EXPECT_EQ(info.total_bytes(), 0);
  EXPECT_EQ(info.Find("empty"), std::optional<int>(0));
}

TEST(RefitInfoTest, NoTensorsAreRefused) {
  EXPECT_THAT(RefitInfo::Create({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tensors")));
}

TEST(RefitInfoTest, RepeatedNameIsRefusedAlsoWithTheSameShape) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    EXPECT_THAT(RefitInfo::Create({{"a.weight", {2}, DType::kBF16},
                                   {"b.weight", {2}, DType::kBF16},
                                   {"a.weight", {2}, dtype}})
                    .status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("'a.weight'"), HasSubstr("twice"))));
  }
}

TEST(RefitInfoTest, TensorWithoutNameIsRefusedByItsPlace) {
  EXPECT_THAT(RefitInfo::Create({{"a", {2}, DType::kF32}, {"", {2}, DType::kF32}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 1 has no name")));
}

TEST(RefitInfoTest, SizesThatCannotBeAreRefusedByName) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(RefitInfo::Create({{"big", {most}, DType::kF32}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'big'")));
  EXPECT_THAT(RefitInfo::Create({{"odd", {3}, DType::kF4}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'odd'"), HasSubstr("whole bytes"))));
  std::vector<TensorSpec> many;
  for (int i = 0; i < 9; ++i) many.push_back({absl::StrCat("t", i), {most / 8}, DType::kU8});
  EXPECT_THAT(RefitInfo::Create(many).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("total size")));
}

TEST(CheckSameTensorsTest, OrderDoesNotMatter) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 50; ++i) tensors.push_back({absl::StrCat("t", i), {i}, DType::kBF16});
  const RefitInfo engine = Info(tensors);
  std::mt19937 rng(1);
  std::shuffle(tensors.begin(), tensors.end(), rng);
  EXPECT_THAT(CheckSameTensors(engine, Info(tensors)), IsOk());
}

TEST(CheckSameTensorsTest, NamesEveryKindOfDifferenceInOneError) {
  const RefitInfo engine = Info({{"same", {2}, DType::kBF16},
                                 {"stale", {2}, DType::kBF16},
                                 {"shaped", {2, 3}, DType::kBF16},
                                 {"typed", {2}, DType::kBF16}});
  const RefitInfo trainer = Info({{"typed", {2}, DType::kF32},
                                  {"shaped", {3, 2}, DType::kBF16},
                                  {"new", {2}, DType::kBF16},
                                  {"same", {2}, DType::kBF16}});
  EXPECT_THAT(
      CheckSameTensors(engine, trainer),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("1 only at the trainer: new"), HasSubstr("1 only at the engine: stale"),
                HasSubstr("1 with another shape: shaped (trainer [3, 2], engine [2, 3])"),
                HasSubstr("1 with another dtype: typed (trainer F32, engine BF16)"),
                Not(HasSubstr("same (")))));
}

TEST(CheckSameTensorsTest, EachKindAloneIsFound) {
  const RefitInfo base = Info({{"a", {2}, DType::kBF16}, {"b", {2}, DType::kBF16}});
  const RefitInfo fewer = Info({{"a", {2}, DType::kBF16}});
  EXPECT_THAT(CheckSameTensors(base, base), IsOk());
  EXPECT_THAT(CheckSameTensors(fewer, base),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 only at the trainer: b")));
  EXPECT_THAT(CheckSameTensors(base, fewer),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 only at the engine: b")));
  // The same bytes and another rank.
  EXPECT_THAT(CheckSameTensors(fewer, Info({{"a", {2, 1}, DType::kBF16}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("with another shape")));
  EXPECT_THAT(CheckSameTensors(fewer, Info({{"a", {2}, DType::kF16}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("with another dtype")));
}

TEST(CheckSameTensorsTest, CountsManyAndNamesTheFirstFive) {
  std::vector<TensorSpec> tensors = {{"common", {2}, DType::kBF16}};
  const RefitInfo engine = Info(tensors);
  for (int i = 0; i < 5; ++i) tensors.push_back({absl::StrCat("t", i), {2}, DType::kBF16});
  EXPECT_THAT(std::string(CheckSameTensors(engine, Info(tensors)).message()),
              AllOf(HasSubstr("5 only at the trainer: t0, t1, t2, t3, t4"), Not(HasSubstr("..."))));
  for (int i = 5; i < 999; ++i) tensors.push_back({absl::StrCat("t", i), {2}, DType::kBF16});
  EXPECT_THAT(
      std::string(CheckSameTensors(engine, Info(tensors)).message()),
      AllOf(HasSubstr("999 only at the trainer: t0, t1, t2, t3, t4, ..."), Not(HasSubstr("t5"))));
}

}  // namespace
}  // namespace weight_sync::refit
