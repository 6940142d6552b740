// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor_digest.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/testing/random_tensor.h"

namespace weight_sync::refit {
namespace {

using testing::DenseBytes;
using testing::kAllViewKinds;
using testing::RandomShape;
using testing::RandomTensor;
using testing::ViewKind;

TEST(TensorDigestTest, StridedEqualsItsContiguousCopyForEveryDType) {
  std::mt19937 rng(1);
  for (const DType dtype : kAllDTypes) {
    for (const ViewKind kind : kAllViewKinds) {
      for (int round = 0; round < 5; ++round) {
        const RandomTensor tensor(dtype, RandomShape(rng), kind, rng);
        const std::vector<std::byte> dense = DenseBytes(tensor.view());
        EXPECT_EQ(
            TensorDigest("t", tensor.view()),
            TensorDigest("t", TensorView::Contiguous(dense.data(), dtype, tensor.view().shape())));
      }
    }
  }
}

TEST(TensorDigestTest, LargeStridedTensorEqualsItsContiguousCopy) {
  std::mt19937 rng(2);
  for (const int64_t columns : {8191, 8192, 8193, 30000}) {  // around the chunks it is read in
    const RandomTensor tensor(DType::kBF16, {2, columns}, ViewKind::kTransposed, rng);
    ASSERT_FALSE(tensor.view().is_contiguous());
    const std::vector<std::byte> dense = DenseBytes(tensor.view());
    EXPECT_EQ(TensorDigest("t", tensor.view()),
              TensorDigest("t", TensorView::Contiguous(dense.data(), DType::kBF16, {columns, 2})));
  }
}

TEST(TensorDigestTest, NameShapeRankAndDTypeMatter) {
  std::mt19937 rng(3);
  const RandomTensor tensor(DType::kU8, {24}, ViewKind::kContiguous, rng);
  const std::byte* data = tensor.view().data();
  const std::vector<std::pair<std::string, TensorView>> all = {
      {"t", TensorView::Contiguous(data, DType::kU8, {24})},
      {"u", TensorView::Contiguous(data, DType::kU8, {24})},
      {"", TensorView::Contiguous(data, DType::kU8, {24})},
      {"t", TensorView::Contiguous(data, DType::kI8, {24})},
      {"t", TensorView::Contiguous(data, DType::kF16, {12})},
      {"t", TensorView::Contiguous(data, DType::kBF16, {12})},
      {"t", TensorView::Contiguous(data, DType::kU8, {4, 6})},
      {"t", TensorView::Contiguous(data, DType::kU8, {6, 4})},
      {"t", TensorView::Contiguous(data, DType::kU8, {24, 1})},
      {"t", TensorView::Contiguous(data, DType::kU8, {1, 24})},
      {"t", TensorView::Contiguous(data, DType::kU8, {23})},
      {"t", TensorView::Contiguous(data, DType::kF64, {3})},
      {"t", TensorView::Contiguous(data, DType::kF64, {1})},
      {"t", TensorView::Contiguous(data, DType::kF64, {})},
      {"t", TensorView::Contiguous(data, DType::kF64, {0})},
      {"t", TensorView::Contiguous(data, DType::kF64, {0, 3})},
      {"t", TensorView::Contiguous(data, DType::kF32, {0})},
  };
  std::set<std::string> digests;
  for (const auto& [name, view] : all) digests.insert(TensorDigest(name, view).Hex());
  EXPECT_EQ(digests.size(), all.size());
}

TEST(TensorDigestTest, DimensionIsNotTakenForAValue) {
  const int64_t zero = 0;
  const std::byte* data = reinterpret_cast<const std::byte*>(&zero);
  EXPECT_NE(TensorDigest("t", TensorView::Contiguous(data, DType::kI64, {1})),
            TensorDigest("t", TensorView::Contiguous(data, DType::kI64, {1, 0})));
}

TEST(TensorDigestTest, SwapOfEqualShapedTensorsChangesBoth) {
  std::mt19937 rng(4);
  const RandomTensor a(DType::kBF16, {8, 8}, ViewKind::kContiguous, rng);
  const RandomTensor b(DType::kBF16, {8, 8}, ViewKind::kContiguous, rng);
  EXPECT_NE(TensorDigest("a", a.view()), TensorDigest("a", b.view()));
  EXPECT_NE(TensorDigest("b", b.view()), TensorDigest("b", a.view()));
  // Also where the values are equal: each name has its own digest.
  EXPECT_NE(TensorDigest("a", a.view()), TensorDigest("b", a.view()));
}

TEST(TensorDigestTest, SwapOfTwoElementsMatters) {
  std::mt19937 rng(5);
  const RandomTensor square(DType::kF32, {9, 9}, ViewKind::kContiguous, rng);
  EXPECT_NE(TensorDigest("t", square.view()),
            TensorDigest("t", square.view().Transposed(0, 1).value()));
}

TEST(TensorDigestTest, TensorsWithoutElementsNeedNoMemory) {
  EXPECT_EQ(TensorDigest("t", TensorView::Contiguous(nullptr, DType::kF32, {0, 3})),
            TensorDigest("t", TensorView::Contiguous(nullptr, DType::kF32, {0, 3})));
}

}  // namespace
}  // namespace weight_sync::refit
