// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/box.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/testing/box_elements.h"
#include "refit/testing/random_tensor.h"

namespace weight_sync::refit {
namespace {

using testing::FlatElements;
using ::testing::IsEmpty;

Box MakeBox(const std::vector<int64_t>& begin, const std::vector<int64_t>& size) {
  Box box;
  box.rank = static_cast<int>(begin.size());
  std::copy(begin.begin(), begin.end(), box.begin.begin());
  std::copy(size.begin(), size.end(), box.size.begin());
  return box;
}

bool Inside(const Shape& shape, const Box& box) {
  if (box.rank != shape.rank()) return false;
  for (int dim = 0; dim < box.rank; ++dim) {
    if (box.begin[dim] < 0 || box.size[dim] < 1 || box.begin[dim] + box.size[dim] > shape[dim]) {
      return false;
    }
  }
  return true;
}

// Every box inside of the shape.
std::vector<Box> AllBoxes(const Shape& shape) {
  std::vector<Box> boxes = {MakeBox({}, {})};
  for (int dim = 0; dim < shape.rank(); ++dim) {
    std::vector<Box> longer;
    for (Box box : boxes) {
      box.rank = dim + 1;
      for (box.begin[dim] = 0; box.begin[dim] < shape[dim]; ++box.begin[dim]) {
        for (box.size[dim] = 1; box.begin[dim] + box.size[dim] <= shape[dim]; ++box.size[dim]) {
          longer.push_back(box);
        }
      }
    }
    boxes = longer;
  }
  return boxes;
}

// fewest[begin][end]: the fewest contiguous boxes that hold the elements [begin, end).
std::vector<std::vector<int>> FewestBoxes(const Shape& shape) {
  const size_t n = static_cast<size_t>(shape.num_elements());
  std::vector<std::vector<bool>> is_box(n + 1, std::vector<bool>(n + 1));
  for (const Box& box : AllBoxes(shape)) {
    const std::vector<int64_t> flat = FlatElements(shape, box);
    if (flat.back() - flat.front() + 1 != static_cast<int64_t>(flat.size())) continue;
    is_box[static_cast<size_t>(flat.front())][static_cast<size_t>(flat.back()) + 1] = true;
  }
  std::vector<std::vector<int>> fewest(n + 1, std::vector<int>(n + 1, 1 << 20));
  for (size_t begin = 0; begin <= n; ++begin) {
    fewest[begin][begin] = 0;
    for (size_t middle = begin; middle < n; ++middle) {
      for (size_t end = middle + 1; end <= n; ++end) {
        if (!is_box[middle][end]) continue;
        fewest[begin][end] = std::min(fewest[begin][end], fewest[begin][middle] + 1);
      }
    }
  }
  return fewest;
}

TEST(BoxTest, WholeIsTheShape) {
  EXPECT_EQ(Box::Whole({4, 6}), MakeBox({0, 0}, {4, 6}));
  EXPECT_EQ(Box::Whole({4, 6}).num_elements(), 24);
  EXPECT_EQ(Box::Whole({}).num_elements(), 1);
  EXPECT_EQ(Box::Whole({4, 0}).num_elements(), 0);
}

TEST(BoxTest, HasAShapeOfItsOwnAndAFirstElement) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 1, 3}}) {
    for (const Box& box : AllBoxes(shape)) {
      EXPECT_EQ(Box::Whole(box.shape()).size, box.size);
      EXPECT_EQ(box.shape().num_elements(), box.num_elements());
      EXPECT_EQ(box.FirstElementIn(shape), FlatElements(shape, box).front()) << box.ToString();
    }
  }
}

TEST(BoxTest, PrintsBeginAndSize) {
  EXPECT_EQ(MakeBox({0, 3}, {1, 2}).ToString(), "[0, 3]+[1, 2]");
  EXPECT_EQ(Box().ToString(), "[]+[]");
}

TEST(CutFlatRangeTest, CutsHeadBodyAndTail) {
  std::vector<Box> parts = {MakeBox({7}, {1})};  // what is there stays
  CutFlatRange({4, 6}, 3, 20, parts);
  EXPECT_THAT(parts, ::testing::ElementsAre(MakeBox({7}, {1}), MakeBox({0, 3}, {1, 3}),
                                            MakeBox({1, 0}, {2, 6}), MakeBox({3, 0}, {1, 2})));
}

TEST(CutFlatRangeTest, EveryRangeIsCoveredInOrderByTheFewestContiguousBoxes) {
  const std::vector<Shape> shapes = {{},           {1},
                                     {7},          {1, 1},
                                     {3, 5},       {5, 1},
                                     {1, 5},       {2, 3, 4},
                                     {3, 1, 4},    {1, 4, 1, 3},
                                     {2, 2, 2, 3}, {2, 1, 3, 1, 2, 2},
                                     {4, 4, 1},    {2, 2, 2, 2, 2}};
  for (const Shape& shape : shapes) {
    const std::vector<std::vector<int>> fewest = FewestBoxes(shape);
    for (int64_t begin = 0; begin <= shape.num_elements(); ++begin) {
      for (int64_t end = begin; end <= shape.num_elements(); ++end) {
        std::vector<Box> boxes;
        CutFlatRange(shape, begin, end, boxes);
        int64_t next = begin;
        for (const Box& box : boxes) {
          ASSERT_TRUE(Inside(shape, box)) << shape << " " << box.ToString();
          for (const int64_t element : FlatElements(shape, box)) {
            ASSERT_EQ(element, next++) << shape << " " << begin << " " << end;
          }
        }
        ASSERT_EQ(next, end) << shape;
        ASSERT_EQ(static_cast<int>(boxes.size()),
                  fewest[static_cast<size_t>(begin)][static_cast<size_t>(end)])
            << shape << " " << begin << " " << end;
        ASSERT_LE(static_cast<int>(boxes.size()), std::max(1, 2 * shape.rank() - 1));
      }
    }
  }
}

TEST(CutFlatRangeTest, LargeRandomShapesAreCoveredInOrderByContiguousBoxes) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<int64_t> dims(rng() % (Shape::kMaxRank + 1));
    for (int64_t& dim : dims) dim = 1 + static_cast<int64_t>(rng() % (round % 3 == 0 ? 180 : 3));
    const Shape shape = Shape::Create(dims).value();
    const uint64_t elements = static_cast<uint64_t>(shape.num_elements());  // up to 180^8 > 2^59
    int64_t begin = static_cast<int64_t>(rng() % (elements + 1));
    int64_t end = static_cast<int64_t>(rng() % (elements + 1));
    if (begin > end) std::swap(begin, end);
    std::vector<Box> boxes;
    CutFlatRange(shape, begin, end, boxes);
    int64_t next = begin;
    for (const Box& box : boxes) {
      ASSERT_TRUE(Inside(shape, box)) << shape << " " << box.ToString();
      int64_t first = 0;
      bool whole_from_here = false;
      for (int dim = 0; dim < box.rank; ++dim) {
        first = first * shape[dim] + box.begin[dim];
        ASSERT_TRUE(!whole_from_here || box.size[dim] == shape[dim])
            << shape << " " << box.ToString();
        if (box.size[dim] > 1) whole_from_here = true;
      }
      ASSERT_EQ(first, next) << shape << " " << box.ToString();
      next += box.num_elements();
    }
    ASSERT_EQ(next, end) << shape;
    ASSERT_LE(static_cast<int>(boxes.size()), std::max(1, 2 * shape.rank() - 1));
  }
}

TEST(CutFlatRangeTest, LargestElementNumbersDoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<Box> boxes;
  CutFlatRange({1, most}, most - 2, most, boxes);
  EXPECT_THAT(boxes, ::testing::ElementsAre(MakeBox({0, most - 2}, {1, 2})));
}

TEST(CutFlatRangeTest, NothingGivesNoBox) {
  std::vector<Box> boxes;
  CutFlatRange({4, 0}, 0, 0, boxes);
  CutFlatRange({4, 6}, 7, 7, boxes);
  CutFlatRange({}, 0, 0, boxes);
  EXPECT_THAT(boxes, IsEmpty());
}

TEST(CutFlatRangeDeathTest, RangeMustLieInTheShape) {
  std::vector<Box> boxes;
  EXPECT_DEATH(CutFlatRange({4}, -1, 2, boxes), "");
  EXPECT_DEATH(CutFlatRange({4}, 3, 2, boxes), "");
  EXPECT_DEATH(CutFlatRange({4}, 3, 5, boxes), "");
}

TEST(StoreBoxTest, AnyBoxOfAnyDTypeIsStoredInItsPlaceAndNowhereElse) {
  std::mt19937 rng(2);
  for (int round = 0; round < 3000; ++round) {
    const DType dtype = kAllDTypes[static_cast<size_t>(round) % kAllDTypes.size()];
    const testing::RandomTensor before(dtype, testing::RandomShape(rng, Shape::kMaxRank),
                                       testing::ViewKind::kContiguous, rng);
    const Shape shape = StorageShape(dtype, before.view().shape());
    Box box = Box::Whole(shape);
    for (int dim = 0; dim < box.rank; ++dim) {
      if (shape[dim] == 0 || rng() % 3 == 0) continue;
      box.begin[dim] = static_cast<int64_t>(rng()) % shape[dim];
      const int64_t most = shape[dim] - box.begin[dim];
      box.size[dim] = rng() % 20 == 0 ? 0 : 1 + static_cast<int64_t>(rng()) % most;
    }
    const int64_t element = StorageElementBytes(dtype);
    std::vector<std::byte> sent(static_cast<size_t>(box.num_elements() * element));
    for (std::byte& byte : sent) byte = static_cast<std::byte>(rng());

    std::vector<std::byte> expected = before.storage();
    const std::vector<int64_t> places = FlatElements(shape, box);
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t bytes = static_cast<size_t>(element);
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(i * bytes), bytes,
                  expected.begin() + places[i] * element);
    }
    std::vector<std::byte> stored = before.storage();
    StoreBox(sent.data(), box,
             MutableTensorView::Contiguous(stored.data(), dtype, before.view().shape()));
    ASSERT_EQ(stored, expected) << shape << " " << box.ToString();
  }
}

}  // namespace
}  // namespace weight_sync::refit
