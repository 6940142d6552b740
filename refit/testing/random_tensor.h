// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Random tensors for property tests: bytes, and a view over them in every kind of strides that a
// trainer's parameter may have. What a view means is told by DenseBytes(), an element at a time.
//
//   std::mt19937 rng(1);
//   RandomTensor tensor(DType::kBF16, RandomShape(rng), ViewKind::kTransposed, rng);
//   EXPECT_EQ(packed, DenseBytes(tensor.view()));
//   EXPECT_EQ(tensor.storage(), storage_before);

#ifndef WEIGHT_SYNC_REFIT_TESTING_RANDOM_TENSOR_H_
#define WEIGHT_SYNC_REFIT_TESTING_RANDOM_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit::testing {

enum class ViewKind {
  kContiguous,
  kTransposed,
  kEveryOther,  // [::2]
  kBroadcast,   // stride 0
  kReversed,    // negative strides
  kOffset,      // sliced at both ends
  kMixed,       // all of these one after another
};

inline constexpr std::array<ViewKind, 7> kAllViewKinds = {
    ViewKind::kContiguous, ViewKind::kTransposed, ViewKind::kEveryOther, ViewKind::kBroadcast,
    ViewKind::kReversed,   ViewKind::kOffset,     ViewKind::kMixed};

// Rank 0 to `max_rank`, at most a few thousand elements, sometimes none.
Shape RandomShape(std::mt19937& rng, int max_rank = 5);

class RandomTensor {
 public:
  // The view's shape comes of `shape` by what `kind` does; the sub-byte types, which are always
  // contiguous, get their last dimension times four, so that they fill whole bytes.
  RandomTensor(DType dtype, const Shape& shape, ViewKind kind, std::mt19937& rng);
  RandomTensor(RandomTensor&&) = default;
  RandomTensor& operator=(RandomTensor&&) = default;

  const TensorView& view() const { return view_; }
  const std::vector<std::byte>& storage() const { return storage_; }

 private:
  std::vector<std::byte> storage_;
  TensorView view_;
};

// The view's storage elements in row-major order.
std::vector<std::byte> DenseBytes(const TensorView& view);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_RANDOM_TENSOR_H_
