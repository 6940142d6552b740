// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/tensor_view.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 0, 1, 2, ... as I32, so that a value is the place it came from.
class Counted {
 public:
  explicit Counted(const Shape& shape) : values_(shape.num_elements()), shape_(shape) {
    std::iota(values_.begin(), values_.end(), 0);
  }
  TensorView view() const {
    return TensorView::Contiguous(reinterpret_cast<const std::byte*>(values_.data()), DType::kI32,
                                  shape_);
  }

 private:
  std::vector<int32_t> values_;
  Shape shape_;
};

std::vector<int32_t> Values(const TensorView& view) {
  std::vector<int32_t> values(view.shape().num_elements());
  CopyElements(view, 0, static_cast<int64_t>(values.size()),
               reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(TensorViewTest, DefaultHasNoBytes) {
  const TensorView view;
  EXPECT_EQ(view.data(), nullptr);
  EXPECT_EQ(view.num_bytes(), 0);
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorViewTest, ContiguousHasRowMajorStrides) {
  const Counted tensor({2, 3, 4});
  EXPECT_THAT(tensor.view().strides(), ElementsAre(12, 4, 1));
  EXPECT_EQ(tensor.view().num_bytes(), 96);
  EXPECT_TRUE(tensor.view().is_contiguous());
}

TEST(TensorViewTest, TransposedReadsColumns) {
  const Counted tensor({2, 3});
  const TensorView view = tensor.view().Transposed(0, 1).value();
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  EXPECT_THAT(view.strides(), ElementsAre(1, 3));
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_THAT(Values(view), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(TensorViewTest, SlicedTakesEveryStep) {
  const Counted tensor({2, 5});
  EXPECT_THAT(Values(tensor.view().Sliced(1, 1, 5, 2).value()), ElementsAre(1, 3, 6, 8));
  EXPECT_THAT(Values(tensor.view().Sliced(1, 1, 4, 2).value()), ElementsAre(1, 3, 6, 8));
  EXPECT_THAT(Values(tensor.view().Sliced(0, 1, 2).value()), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(Values(tensor.view().Sliced(1, 0, 5, std::numeric_limits<int64_t>::max()).value()),
              ElementsAre(0, 5));
}

TEST(TensorViewTest, SlicedBackwardsHasNegativeStrides) {
  const Counted tensor({2, 3});
  const TensorView view = tensor.view().Sliced(1, 2, -1, -1).value();
  EXPECT_THAT(view.strides(), ElementsAre(3, -1));
  EXPECT_THAT(Values(view), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(Values(tensor.view().Sliced(1, 2, 0, std::numeric_limits<int64_t>::min()).value()),
              ElementsAre(2, 5));
}

TEST(TensorViewTest, EmptySliceHasNoElements) {
  const Counted tensor({2, 3});
  const TensorView view = tensor.view().Sliced(1, 2, 2).value();
  EXPECT_EQ(view.shape(), (Shape{2, 0}));
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorViewTest, StrideOfZeroRepeats) {
  const int32_t values[2] = {7, 9};
  const TensorView view =
      TensorView::Strided(reinterpret_cast<const std::byte*>(values), DType::kI32, {2, 3}, {1, 0})
          .value();
  EXPECT_THAT(Values(view), ElementsAre(7, 7, 7, 9, 9, 9));
}

TEST(TensorViewTest, StridesOfSingleElementsDoNotMatter) {
  const Counted tensor({4});
  const TensorView view =
      TensorView::Strided(tensor.view().data(), DType::kI32, {1, 4, 1}, {-77, 1, 99}).value();
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorViewTest, CopiesAnyRangeOfElements) {
  const Counted tensor({3, 4, 5});
  const TensorView view =
      tensor.view().Transposed(0, 2).value().Sliced(1, 3, -1, -2).value();  // [5, 2, 3]
  const std::vector<int32_t> all = Values(view);
  for (int64_t begin = 0; begin <= 30; ++begin) {
    for (int64_t end = begin; end <= 30; ++end) {
      std::vector<int32_t> part(end - begin);
      CopyElements(view, begin, end, reinterpret_cast<std::byte*>(part.data()));
      EXPECT_EQ(part, std::vector<int32_t>(all.begin() + begin, all.begin() + end));
    }
  }
}

// The definition of a strided view, element by element.
TEST(TensorViewTest, RandomViewsOfEveryTypeMatchTheDefinition) {
  std::mt19937_64 random(20260501);
  const auto uniform = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    const DType dtype = kAllDTypes[uniform(0, kAllDTypes.size() - 1)];
    if (IsSubByte(dtype)) continue;
    const int64_t bytes = StorageElementBytes(dtype);
    std::vector<int64_t> dims(uniform(1, 4));
    for (int64_t& dim : dims) dim = uniform(1, 5);
    const Shape full = Shape::Create(dims).value();
    std::vector<std::byte> storage(full.num_elements() * bytes);
    for (std::byte& b : storage) b = static_cast<std::byte>(random());

    TensorView view = TensorView::Contiguous(storage.data(), dtype, full);
    for (int op = 0; op < 3; ++op) {
      const int dim = uniform(0, full.rank() - 1);
      if (uniform(0, 1) == 0) {
        view = view.Transposed(dim, uniform(0, full.rank() - 1)).value();
      } else if (uniform(0, 1) == 0) {
        view = view.Sliced(dim, uniform(0, view.shape()[dim] - 1), view.shape()[dim], uniform(1, 3))
                   .value();
      } else {
        view = view.Sliced(dim, uniform(0, view.shape()[dim] - 1), -1, -uniform(1, 3)).value();
      }
    }

    std::vector<std::byte> expected;
    std::vector<int64_t> index(view.shape().rank(), 0);
    for (int64_t n = 0; n < view.shape().num_elements(); ++n) {
      int64_t offset = 0;
      for (size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides()[d];
      const std::byte* element = view.data() + offset * bytes;
      expected.insert(expected.end(), element, element + bytes);
      for (int d = view.shape().rank() - 1; d >= 0 && ++index[d] == view.shape()[d]; --d) {
        index[d] = 0;
      }
    }
    std::vector<std::byte> actual(view.num_bytes());
    CopyElements(view, 0, view.shape().num_elements(), actual.data());
    ASSERT_EQ(actual, expected) << "round " << round;
  }
}

TEST(TensorViewTest, SubByteTensorsAreCopiedAsBytes) {
  const std::byte values[6] = {std::byte{1}, std::byte{2}, std::byte{3},
                               std::byte{4}, std::byte{5}, std::byte{6}};
  const TensorView view = TensorView::Contiguous(values, DType::kF6E2M3, {2, 4});
  EXPECT_EQ(view.num_bytes(), 6);
  std::byte copied[2];
  CopyElements(view, 3, 5, copied);
  EXPECT_THAT(copied, ElementsAre(std::byte{4}, std::byte{5}));
}

TEST(TensorViewTest, RefusesWhatCannotBeAView) {
  const std::byte data[64] = {};
  const auto message = [](const absl::StatusOr<TensorView>& view) {
    EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(view.status().message());
  };
  EXPECT_THAT(message(TensorView::Strided(data, DType::kF32, {2, 3}, {3})),
              HasSubstr("has 2 dimensions but there are 1 strides"));
  EXPECT_THAT(message(TensorView::Strided(data, DType::kF4, {2, 4}, {1, 2})),
              HasSubstr("dtype F4 must be contiguous"));
  EXPECT_THAT(message(TensorView::Strided(data, DType::kF4, {3}, {1})),
              HasSubstr("does not fill whole bytes"));
  EXPECT_THAT(message(TensorView::Strided(data, DType::kF32, {2, 3}, {int64_t{1} << 61, 1})),
              HasSubstr("reach farther than 64 bits"));
  EXPECT_THAT(message(TensorView::Strided(data, DType::kF32, {3}, {-(int64_t{1} << 62)})),
              HasSubstr("reach farther than 64 bits"));
  const TensorView f4 = TensorView::Contiguous(data, DType::kF4, {2, 4});
  EXPECT_THAT(message(f4.Sliced(0, 0, 1)), HasSubstr("F4 cannot be sliced"));
  EXPECT_THAT(message(f4.Transposed(0, 1)), HasSubstr("F4 must be contiguous"));
  const TensorView f32 = TensorView::Contiguous(data, DType::kF32, {2, 3});
  EXPECT_THAT(message(f32.Transposed(0, 2)), HasSubstr("cannot be exchanged"));
  EXPECT_THAT(message(f32.Sliced(2, 0, 1)), HasSubstr("has no dimension 2"));
  EXPECT_THAT(message(f32.Sliced(1, 0, 4)), HasSubstr("slice 0:4:1 is outside"));
  EXPECT_THAT(message(f32.Sliced(1, -1, 2)), HasSubstr("is outside"));
  EXPECT_THAT(message(f32.Sliced(1, 0, 2, 0)), HasSubstr("is outside"));
  EXPECT_THAT(message(f32.Sliced(1, 0, 2, -1)), HasSubstr("is outside"));
  EXPECT_THAT(message(f32.Sliced(1, 3, -1, -1)), HasSubstr("is outside"));
}

TEST(TensorViewTest, TensorsWithoutElementsTakeAnyShapeAndStrides) {
  const TensorView view =
      TensorView::Contiguous(nullptr, DType::kF32, {0, int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_TRUE(view.is_contiguous());
  CopyElements(view, 0, 0, nullptr);
  EXPECT_TRUE(TensorView::Strided(nullptr, DType::kF4, {0, 3}, {5, 7}).value().is_contiguous());
}

TEST(TensorViewTest, WritableViewIsAlsoReadable) {
  std::byte data[8] = {};
  const MutableTensorView writable = MutableTensorView::Contiguous(data, DType::kU8, {2, 4});
  const MutableTensorView column = writable.Sliced(1, 1, 2).value();
  column.data()[column.strides()[0]] = std::byte{42};
  const TensorView readable = column;
  std::byte copied[2];
  CopyElements(readable, 0, 2, copied);
  EXPECT_THAT(copied, ElementsAre(std::byte{0}, std::byte{42}));
  EXPECT_EQ(data[5], std::byte{42});
}

TEST(TensorViewDeathTest, RangeOutsideOfTheTensorDies) {
  const Counted tensor({2, 3});
  std::byte dst[64];
  EXPECT_DEATH(CopyElements(tensor.view(), 0, 7, dst), "elements 0 to 7");
}

}  // namespace
}  // namespace weight_sync::refit
