// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/bound_arrays.h"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

class BoundArraysTest : public ::testing::Test {
 protected:
  std::vector<TensorView> Views() const {
    return {TensorView::Contiguous(nullptr, DType::kU8, {4}),
            TensorView::Contiguous(nullptr, DType::kU8, {2}),
            TensorView::Contiguous(fixed_.data(), DType::kU8, {3})};
  }
  std::vector<const std::byte*> Places() const { return {a_.data(), b_.data()}; }

  std::array<std::byte, 4> a_ = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 2> b_ = {std::byte{5}, std::byte{6}};
  std::array<std::byte, 3> fixed_ = {};
  BoundArrays arrays_{Views(), 2};
  StepGate gate_;
};

TEST_F(BoundArraysTest, AreReadInPlace) {
  arrays_.Bind(3, Places());
  EXPECT_THAT(arrays_.Begin(3, gate_), IsOk());
  const auto bases = arrays_.bases();
  ASSERT_THAT(bases, IsOk());
  EXPECT_EQ(*bases, (std::vector<const std::byte*>{a_.data(), b_.data(), fixed_.data()}));
}

TEST_F(BoundArraysTest, OnlyWhatIsBoundIsRead) {
  EXPECT_THAT(arrays_.Begin(1, gate_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                HasSubstr("no arrays are bound; Bind()")));
  EXPECT_THAT(arrays_.bases(), StatusIs(absl::StatusCode::kFailedPrecondition));
  arrays_.Bind(3, Places());
  EXPECT_THAT(arrays_.Begin(4, gate_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("are of version 3")));
  arrays_.Release();
  EXPECT_THAT(arrays_.Begin(3, gate_), StatusIs(absl::StatusCode::kFailedPrecondition));
  arrays_.Bind(std::nullopt, Places());
  EXPECT_THAT(arrays_.Begin(4, gate_), IsOk());
}

TEST_F(BoundArraysTest, EveryMoveIsAnotherBinding) {
  const uint64_t none = arrays_.binding();
  arrays_.Bind(1, Places());
  const uint64_t first = arrays_.binding();
  EXPECT_NE(first, none);
  EXPECT_THAT(arrays_.bases(first), IsOk());
  arrays_.Bind(1, Places());
  EXPECT_NE(arrays_.binding(), first);
  EXPECT_THAT(arrays_.bases(first),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("bound anew or released")));
  const uint64_t second = arrays_.binding();
  arrays_.Release();
  EXPECT_NE(arrays_.binding(), second);
}

TEST_F(BoundArraysTest, AStepMeanwhileFailsASyncThatReadsInPlace) {
  arrays_.Bind(1, Places());
  const auto guard = arrays_.Begin(1, gate_);
  ASSERT_THAT(guard, IsOk());
  EXPECT_TRUE(guard->blocks_trainer());
  {
    const StepGate::Step step(gate_);
  }
  EXPECT_THAT(guard->Unchanged(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(BoundArraysTest, AStepMeanwhileDoesNotTouchASnapshot) {
  arrays_.Bind(1, Places());
  ASSERT_THAT(arrays_.UseSnapshots(), IsOk());
  EXPECT_THAT(arrays_.bases(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no copy")));
  const auto guard = arrays_.Begin(1, gate_);
  ASSERT_THAT(guard, IsOk());
  EXPECT_FALSE(guard->blocks_trainer());
  const uint64_t binding = arrays_.binding();
  {
    const StepGate::Step step(gate_);
    a_.fill(std::byte{9});
  }
  arrays_.Release();
  EXPECT_THAT(guard->Unchanged(), IsOk());
  EXPECT_EQ(arrays_.binding(), binding);
  auto bases = arrays_.bases();
  ASSERT_THAT(bases, IsOk());
  ASSERT_EQ(bases->size(), 3u);
  EXPECT_EQ((*bases)[0][3], std::byte{4});
  EXPECT_EQ((*bases)[1][1], std::byte{6});
  EXPECT_EQ((*bases)[2], fixed_.data());

  // The next sync reads what is there then.
  EXPECT_THAT(arrays_.Begin(2, gate_), StatusIs(absl::StatusCode::kFailedPrecondition));
  arrays_.Bind(2, Places());
  EXPECT_EQ((*arrays_.bases())[0][3], std::byte{4});
  ASSERT_THAT(arrays_.Begin(2, gate_), IsOk());
  EXPECT_NE(arrays_.binding(), binding);
  bases = arrays_.bases();
  ASSERT_THAT(bases, IsOk());
  EXPECT_EQ((*bases)[0][3], std::byte{9});
}

TEST_F(BoundArraysTest, ASnapshotIsNotTakenWhileAStepIsWriting) {
  arrays_.Bind(1, Places());
  ASSERT_THAT(arrays_.UseSnapshots(), IsOk());
  const StepGate::Step step(gate_);
  EXPECT_THAT(arrays_.Begin(1, gate_), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace weight_sync::refit
