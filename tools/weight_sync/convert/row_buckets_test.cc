// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/row_buckets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/hf_source.h"
#include "refit/read_guard.h"
#include "refit/tensor/dtype.h"
#include "tools/weight_sync/common/fill_buckets.h"

namespace weight_sync::convert {
namespace {

using ::absl_testing::IsOk;
using refit::DType;
using refit::MutableTensorView;
using refit::TensorSpec;

// Three tensors of two bytes an element, one after another; a scalar, and one without elements.
class RowBucketsTest : public ::testing::Test {
 protected:
  RowBucketsTest() : info_(*refit::RefitInfo::Create(Specs())), memory_(1000) {
    std::byte* at = memory_.data();
    for (const TensorSpec& spec : info_.tensors()) {
      views_.push_back(MutableTensorView::Contiguous(at, spec.dtype, spec.shape));
      at += spec.bytes();
    }
    for (const MutableTensorView& view : views_) targets_.push_back(&view);
  }
  static std::vector<TensorSpec> Specs() {
    return {{"a", {7, 3}, DType::kBF16},
            {"scalar", {}, DType::kF32},
            {"none", {0, 3}, DType::kBF16},
            {"b", {5, 2, 4}, DType::kBF16},
            {"c", {11}, DType::kU8}};
  }

  const refit::RefitInfo info_;
  std::vector<std::byte> memory_;
  std::vector<MutableTensorView> views_;
  std::vector<const MutableTensorView*> targets_;
};

TEST_F(RowBucketsTest, EveryByteGetsToItsPlaceWhateverTheRuns) {
  std::vector<std::byte> held(memory_.size());
  for (size_t i = 0; i < held.size(); ++i) held[i] = static_cast<std::byte>(i % 251 + 1);
  std::vector<refit::HfParameter> parameters;
  for (int t = 0; t < info_.size(); ++t) {
    parameters.push_back(
        {info_[t].name, refit::TensorView::Contiguous(
                            held.data() + (views_[static_cast<size_t>(t)].data() - memory_.data()),
                            info_[t].dtype, info_[t].shape)});
  }
  const refit::StepGate gate;
  const auto source = refit::HfSource::Create(parameters, &gate);
  ASSERT_THAT(source, IsOk());
  for (const int64_t run_bytes : {1, 6, 12, 16, 33, 1000}) {
    std::fill(memory_.begin(), memory_.end(), std::byte{0});
    const RowBuckets rows = MakeRowBuckets(info_, targets_, run_bytes);
    EXPECT_EQ(rows.bytes, info_.total_bytes());
    size_t filled = 0;
    EXPECT_THAT(tools::FillBuckets(
                    **source, rows.buckets, [&](size_t b) { return rows.places[b]; },
                    [&](size_t b) { EXPECT_EQ(b, filled++); }),
                IsOk());
    EXPECT_EQ(filled, rows.buckets.size());
    EXPECT_EQ(std::memcmp(memory_.data(), held.data(), static_cast<size_t>(info_.total_bytes())), 0)
        << run_bytes;
  }
}

TEST_F(RowBucketsTest, RunsAreAsLongAsTheyMayBe) {
  const auto sizes = [&](int64_t run_bytes) {
    std::vector<int64_t> bytes;
    for (const refit::Bucket& one : MakeRowBuckets(info_, targets_, run_bytes).buckets) {
      bytes.push_back(one.bytes);
    }
    return bytes;
  };
  EXPECT_EQ(sizes(1000), (std::vector<int64_t>{42, 4, 80, 11}));
  EXPECT_EQ(sizes(20), (std::vector<int64_t>{18, 18, 6, 4, 16, 16, 16, 16, 16, 11}));
}

TEST_F(RowBucketsTest, WhatIsNotWantedHasNoBucket) {
  targets_[0] = targets_[4] = nullptr;
  const RowBuckets rows = MakeRowBuckets(info_, targets_, 1000);
  EXPECT_EQ(rows.buckets.size(), 2u);
  EXPECT_EQ(rows.bytes, 84);
}

}  // namespace
}  // namespace weight_sync::convert
