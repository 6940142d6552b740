// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/shape.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeTest, ScalarHasOneElementAndNoDimensions) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
  EXPECT_EQ(Shape::Create({}).value(), scalar);
}

TEST(ShapeTest, KeepsItsDimensions) {
  const Shape shape = {2, 3};
  EXPECT_EQ(shape.rank(), 2);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THAT(shape.dims(), ElementsAre(2, 3));
  EXPECT_EQ(shape.num_elements(), 6);
  EXPECT_EQ(shape.ToString(), "[2, 3]");
}

TEST(ShapeTest, EqualMeansSameDimensions) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{6}), (Shape{6, 1}));
  EXPECT_NE(Shape(), (Shape{1}));
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(
      {Shape(), Shape{1}, Shape{0}, Shape{2, 3}, Shape{3, 2}, Shape{6}}));
}

TEST(ShapeTest, TakesDimensionsOfZeroAndEightDimensions) {
  EXPECT_EQ((Shape{4, 0, 3}).num_elements(), 0);
  EXPECT_EQ((Shape{1, 2, 1, 2, 1, 2, 1, 2}).num_elements(), 16);
  EXPECT_EQ(Shape::Create({kMax}).value().num_elements(), kMax);
  EXPECT_EQ(Shape::Create({0, kMax, kMax}).value().num_elements(), 0);
}

TEST(ShapeTest, RefusesWhatIsNotAShape) {
  struct Case {
    std::vector<int64_t> dims;
    std::string error;
  };
  const Case cases[] = {
      {{2, -1}, "shape [2, -1] has the negative dimension -1"},
      {{0, -1}, "negative dimension -1"},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1}, "has 9 dimensions; at most 8"},
      {{kMax, 2}, "more elements than 64 bits can count"},
      {{int64_t{1} << 32, int64_t{1} << 31}, "more elements than 64 bits can count"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Shape::Create(c.dims).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST(ShapeDeathTest, InvalidLiteralDies) { EXPECT_DEATH((Shape{2, -1}), "negative dimension"); }

TEST(ByteSizeTest, CountsWholeBytes) {
  EXPECT_EQ(ByteSize(DType::kBF16, {2, 3}).value(), 12);
  EXPECT_EQ(ByteSize(DType::kF64, Shape()).value(), 8);
  EXPECT_EQ(ByteSize(DType::kF4, {2, 3}).value(), 3);
  EXPECT_EQ(ByteSize(DType::kF6E2M3, {4}).value(), 3);
  EXPECT_EQ(ByteSize(DType::kC64, {5, 0}).value(), 0);
}

TEST(ByteSizeTest, RefusesFractionsOfBytesAndOverflow) {
  EXPECT_THAT(std::string(ByteSize(DType::kF4, {3}).status().message()),
              HasSubstr("dtype F4 (4 bits an element) and shape [3] does not fill whole bytes"));
  EXPECT_THAT(std::string(ByteSize(DType::kF6E3M2, {2}).status().message()),
              HasSubstr("does not fill whole bytes"));
  EXPECT_THAT(std::string(ByteSize(DType::kF32, {kMax / 4}).status().message()),
              HasSubstr("too many bytes"));
  EXPECT_EQ(ByteSize(DType::kF32, {kMax / 4}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StorageShapeTest, IsTheShapeItselfForWholeBytesAndOpaqueBytesBelow) {
  for (const DType dtype : kAllDTypes) {
    const Shape shape = {3, 8};
    const Shape storage = StorageShape(dtype, shape);
    EXPECT_EQ(storage.num_elements() * StorageElementBytes(dtype), ByteSize(dtype, shape).value());
    if (IsSubByte(dtype)) {
      EXPECT_EQ(storage.rank(), 1);
      EXPECT_EQ(StorageElementBytes(dtype), 1);
    } else {
      EXPECT_EQ(storage, shape);
    }
  }
  EXPECT_EQ(StorageShape(DType::kF4, {3, 8}), (Shape{12}));
}

}  // namespace
}  // namespace weight_sync::refit
