// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/snapshot.h"

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"
#include "refit/testing/random_tensor.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;
using testing::RandomTensor;

TensorView At(const TensorView& like, const std::byte* data) {
  if (like.is_contiguous()) return TensorView::Contiguous(data, like.dtype(), like.shape());
  return *TensorView::Strided(data, like.dtype(), like.shape(), like.strides());
}

TEST(SnapshotTest, HoldsWhatArraysOfAnyStridesHeldWhenItWasTaken) {
  std::mt19937 rng(3);
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorView> views;
  std::vector<const std::byte*> bases;
  for (int i = 0; i < 400; ++i) {
    const RandomTensor tensor(kAllDTypes[rng() % kAllDTypes.size()], testing::RandomShape(rng, 4),
                              testing::kAllViewKinds[rng() % testing::kAllViewKinds.size()], rng);
    memory.push_back(tensor.storage());
    views.push_back(tensor.view());
    bases.push_back(memory.back().data() + (tensor.view().data() - tensor.storage().data()));
  }
  absl::StatusOr<Snapshot> made = Snapshot::Create(views);
  ASSERT_THAT(made, IsOk());
  Snapshot snapshot = *std::move(made);
  for (int round = 0; round < 2; ++round) {
    std::vector<base::Digest128> before;
    for (size_t i = 0; i < views.size(); ++i) {
      before.push_back(TensorDigest("", At(views[i], bases[i])));
    }
    snapshot.Take(bases);
    // The arrays go on; the copy does not.
    for (std::vector<std::byte>& bytes : memory) {
      for (std::byte& byte : bytes) byte ^= std::byte{0x5a};
    }
    ASSERT_EQ(snapshot.bases().size(), views.size());
    for (size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(TensorDigest("", At(views[i], snapshot.bases()[i])), before[i]) << i;
    }
  }
}

TEST(SnapshotTest, OfNothingTakesNothing) {
  const auto none = Snapshot::Create({});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(none->bytes(), 0);
  const auto empty = Snapshot::Create({TensorView::Contiguous(nullptr, DType::kF32, {0, 3})});
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(empty->bytes(), 0);
}

TEST(SnapshotTest, MoreThanThereIsSaysHowMuchItWouldTake) {
  EXPECT_THAT(
      Snapshot::Create({TensorView::Contiguous(nullptr, DType::kU8, {int64_t{1} << 56})}).status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("72057594037927936 bytes")));
}

}  // namespace
}  // namespace weight_sync::refit
