// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/packing/packer.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/box.h"
#include "refit/packing/bucket.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Tensor {
  DType dtype;
  Shape shape;
};

RefitInfo MakeInfo(const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) {
    specs.push_back({absl::StrCat("t", specs.size()), tensor.shape, tensor.dtype});
  }
  return RefitInfo::Create(std::move(specs)).value();
}

RefitInfo Bytes(const std::vector<int64_t>& sizes) {
  std::vector<Tensor> tensors;
  for (const int64_t size : sizes) tensors.push_back({DType::kU8, Shape{size}});
  return MakeInfo(tensors);
}

// Packs and checks what holds for every plan: no bucket over its limit, pieces in order without
// overlap, every tensor's start aligned, every offset a multiple of the item size, and every
// element exactly once, in order.
std::vector<Bucket> PackAndCheck(const RefitInfo& info, const Geometry& geometry) {
  auto packed = Pack(info, geometry);
  EXPECT_THAT(packed, IsOk());
  const std::vector<Bucket>& buckets = *packed;
  EXPECT_FALSE(buckets.empty());
  std::vector<int64_t> done(static_cast<size_t>(info.size()));
  int last_tensor = 0;
  for (const Bucket& bucket : buckets) {
    EXPECT_LE(bucket.bytes, geometry.bucket_bytes);
    int64_t end = 0;
    int in_bucket = -1;
    for (const Piece& piece : bucket.pieces) {
      const TensorSpec& spec = info[piece.tensor];
      const Shape shape = StorageShape(spec.dtype, spec.shape);
      const int64_t element = StorageElementBytes(spec.dtype);
      EXPECT_GE(piece.dst, end);
      EXPECT_LT(piece.dst - end, geometry.alignment);
      EXPECT_EQ(piece.bytes, piece.box.num_elements() * element);
      EXPECT_GT(piece.bytes, 0);
      EXPECT_EQ(piece.dst % element, 0);
      EXPECT_GE(piece.tensor, last_tensor);
      if (piece.tensor != in_bucket) {
        EXPECT_EQ(piece.dst % geometry.alignment, 0);
      }
      // Contiguous in the tensor, and where the last piece ended.
      int64_t first = 0;
      bool whole_from_here = false;
      EXPECT_EQ(piece.box.rank, shape.rank());
      for (int dim = 0; dim < shape.rank(); ++dim) {
        EXPECT_GE(piece.box.begin[dim], 0);
        EXPECT_LE(piece.box.begin[dim] + piece.box.size[dim], shape[dim]);
        first = first * shape[dim] + piece.box.begin[dim];
        if (whole_from_here) {
          EXPECT_EQ(piece.box.size[dim], shape[dim]);
        }
        whole_from_here = whole_from_here || piece.box.size[dim] > 1;
      }
      int64_t& next = done[static_cast<size_t>(piece.tensor)];
      EXPECT_EQ(first, next);
      next += piece.box.num_elements();
      end = piece.dst + piece.bytes;
      in_bucket = last_tensor = piece.tensor;
    }
    EXPECT_EQ(bucket.bytes, end);
    EXPECT_TRUE(buckets.size() == 1 || !bucket.pieces.empty()) << "an empty bucket among others";
  }
  for (int t = 0; t < info.size(); ++t) {
    EXPECT_EQ(done[static_cast<size_t>(t)],
              StorageShape(info[t].dtype, info[t].shape).num_elements());
  }
  return *std::move(packed);
}

TEST(CheckGeometryTest, BucketBytesMustBeAPositiveMultipleOfTheAlignment) {
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-64}, int64_t{63}, int64_t{65}, int64_t{4100},
        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(absl::StrCat("bucket_bytes is ", bytes, ";")), HasSubstr("64")));
    EXPECT_THAT(CheckGeometry({bytes, 64}), refused);
    EXPECT_THAT(Pack(Bytes({10}), {bytes, 64}).status(), refused);
  }
  EXPECT_THAT(CheckGeometry({64, 64}), IsOk());
  EXPECT_THAT(CheckGeometry({1 << 20, 64}), IsOk());
}

TEST(CheckGeometryTest, AlignmentMustBeAPowerOfTwoThatSuitsEveryElement) {
  for (const int64_t alignment : {int64_t{0}, int64_t{-64}, int64_t{1}, int64_t{4}, int64_t{12},
                                  int64_t{96}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(CheckGeometry({4096, alignment}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("alignment is ", alignment, ";"))));
  }
  EXPECT_THAT(CheckGeometry({4096, 8}), IsOk());
  EXPECT_THAT(CheckGeometry({4096, 4096}), IsOk());
}

TEST(PackTest, TensorsAroundABucketsSizeInEveryOrder) {
  constexpr int64_t kB = 4096;
  std::vector<Tensor> tensors = {
      {DType::kU8, {kB - 1}},      {DType::kU8, {kB}},          {DType::kU8, {kB + 1}},
      {DType::kU8, {10 * kB + 3}}, {DType::kBF16, {2, 3 * kB}},  // one row is larger than a bucket
      {DType::kU8, {1, 10 * kB}},
  };
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  do {
    std::vector<Tensor> ordered;
    for (const size_t i : order) ordered.push_back(tensors[i]);
    PackAndCheck(MakeInfo(ordered), {kB, 64});
    if (::testing::Test::HasFailure()) return;
  } while (std::next_permutation(order.begin(), order.end()));
  for (const Tensor& only : tensors) {
    const RefitInfo info = MakeInfo({only});
    EXPECT_EQ(static_cast<int64_t>(PackAndCheck(info, {kB, 64}).size()),
              (info.total_bytes() + kB - 1) / kB);
  }
}

TEST(PackTest, LastTensorThatFillsABucketExactlyOpensNoOther) {
  const std::vector<Bucket> buckets = PackAndCheck(Bytes({64, 4032, 4096}), {4096, 64});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].bytes, 4096);
  EXPECT_EQ(buckets[1].bytes, 4096);
}

TEST(PackTest, PaddingAloneNeverPushesATensorOverTheEnd) {
  // 57 bytes, then 8 that would fit without the padding.
  const std::vector<Bucket> buckets =
      PackAndCheck(MakeInfo({{DType::kI8, {57}}, {DType::kI64, {1}}}), {64, 8});
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].bytes, 57);
  EXPECT_EQ(buckets[1].pieces[0].dst, 0);
  // And one that the padding leaves room for.
  EXPECT_EQ(PackAndCheck(MakeInfo({{DType::kI8, {56}}, {DType::kI64, {1}}}), {64, 8}).size(), 1u);
}

TEST(PackTest, MixedDTypesInAllOrdersStayAlignedToTheirItems) {
  std::vector<Tensor> tensors = {{DType::kI8, {3}},
                                 {DType::kF8E4M3, {5}},
                                 {DType::kBF16, {3}},
                                 {DType::kF32, {7}},
                                 {DType::kI64, {3}}};
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  do {
    std::vector<Tensor> ordered;
    for (const size_t i : order) ordered.push_back(tensors[i]);
    const RefitInfo info = MakeInfo(ordered);
    for (const int64_t alignment : {8, 64}) {
      for (const int64_t bucket : {64, 128, 4096}) PackAndCheck(info, {bucket, alignment});
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PackTest, BucketsOfAnOddTotalAreFollowedByAlignedOnes) {
  const std::vector<Bucket> buckets = PackAndCheck(
      MakeInfo({{DType::kI8, {61}}, {DType::kF32, {16}}, {DType::kI8, {3}}, {DType::kI64, {9}}}),
      {64, 8});
  EXPECT_EQ(buckets[0].bytes, 61);
}

TEST(PackTest, RandomListsNeverExceedABucketAndWasteFew) {
  std::mt19937 rng(1);
  for (int round = 0; round < 1000; ++round) {
    const int64_t alignment = int64_t{8} << (rng() % 5);
    const int64_t bucket_bytes = alignment * (1 + static_cast<int64_t>(rng() % 40));
    std::vector<Tensor> tensors;
    int64_t padded = 0;
    const int count = 1 + static_cast<int>(rng() % 20);
    for (int t = 0; t < count; ++t) {
      const DType dtype = kAllDTypes[rng() % kAllDTypes.size()];
      std::vector<int64_t> dims(1 + rng() % 4);
      for (int64_t& dim : dims) dim = static_cast<int64_t>(rng() % 9);
      if (IsSubByte(dtype)) dims.back() *= 4;
      tensors.push_back({dtype, Shape::Create(dims).value()});
      const int64_t bytes = ByteSize(dtype, tensors.back().shape).value();
      padded += (bytes + alignment - 1) / alignment * alignment;
    }
    const std::vector<Bucket> buckets = PackAndCheck(MakeInfo(tensors), {bucket_bytes, alignment});
    // Cut wherever a bucket is full, so nothing but padding is wasted.
    EXPECT_EQ(static_cast<int64_t>(buckets.size()),
              std::max<int64_t>(1, (padded + bucket_bytes - 1) / bucket_bytes));
    if (::testing::Test::HasFailure()) {
      FAIL() << "round " << round;
    }
  }
}

TEST(PackTest, TensorsWithoutElementsGetNoPiece) {
  const RefitInfo info = MakeInfo(
      {{DType::kF32, {0}}, {DType::kU8, {3}}, {DType::kF32, {4, 0, 7}}, {DType::kI64, {}}});
  const std::vector<Bucket> buckets = PackAndCheck(info, {64, 8});
  ASSERT_EQ(buckets.size(), 1u);
  ASSERT_EQ(buckets[0].pieces.size(), 2u);
  EXPECT_EQ(buckets[0].pieces[0].tensor, 1);
  EXPECT_EQ(buckets[0].pieces[1].tensor, 3);

  const std::vector<Bucket> none =
      PackAndCheck(MakeInfo({{DType::kF32, {0}}, {DType::kF32, {0, 2}}}), {64, 8});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_THAT(none[0].pieces, IsEmpty());
  EXPECT_EQ(none[0].bytes, 0);
}

TEST(PackTest, SizesBeyondFourGibibytes) {
  const int64_t gib = int64_t{1} << 30;
  PackAndCheck(MakeInfo({{DType::kU8, {5 * gib + 1}},
                         {DType::kBF16, {248320, 5120}},
                         {DType::kF32, {70'000, 70'000}},
                         {DType::kI8, {3}}}),
               {64 << 20, 64});
  // One bucket that holds it all.
  const std::vector<Bucket> one = PackAndCheck(
      MakeInfo({{DType::kU8, {5 * gib + 1}}, {DType::kI64, {gib}}}), {int64_t{1} << 40, 64});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].bytes, 5 * gib + 64 + 8 * gib);
}

double PackSeconds(const RefitInfo& info) {
  double best = 1e9;
  for (int i = 0; i < 9; ++i) {
    timespec begin, end;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    EXPECT_THAT(Pack(info, {64 << 10, 64}), IsOk());
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    best = std::min(best, static_cast<double>(end.tv_sec - begin.tv_sec) +
                              1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec));
  }
  return best;
}

TEST(PackTest, TimeGrowsLinearlyWithTinyTensors) {
  const RefitInfo few = Bytes(std::vector<int64_t>(5'000, 64));
  const RefitInfo many = Bytes(std::vector<int64_t>(20'000, 64));
  PackAndCheck(many, {64 << 10, 64});
  const double ratio = PackSeconds(many) / PackSeconds(few);
  RecordProperty("ratio", absl::StrCat(ratio));
  EXPECT_LT(ratio, 6);
}

TEST(PlanDigestTest, EqualPlansHaveEqualDigests) {
  const std::vector<Tensor> tensors = {{DType::kBF16, {17, 33}}, {DType::kF32, {5}}};
  const auto a = Pack(MakeInfo(tensors), {256, 64});
  const auto b = Pack(MakeInfo(tensors), {256, 64});
  EXPECT_EQ(PlanDigest(*a), PlanDigest(*b));
}

TEST(PlanDigestTest, AnythingElseInPlaceShapeOrderOrGeometryDiffers) {
  const DType b16 = DType::kBF16, f32 = DType::kF32;
  const std::vector<std::pair<std::vector<Tensor>, Geometry>> plans = {
      {{{b16, {17, 33}}, {f32, {5}}}, {256, 64}},
      {{{b16, {17, 33}}, {f32, {5}}}, {512, 64}},
      {{{b16, {17, 33}}, {f32, {5}}}, {256, 8}},
      {{{b16, {33, 17}}, {f32, {5}}}, {256, 64}},
      {{{b16, {561}}, {f32, {5}}}, {256, 64}},
      {{{f32, {5}}, {b16, {17, 33}}}, {256, 64}},
      {{{b16, {17, 33}}, {f32, {4}}}, {256, 64}},
      {{{b16, {17, 33}}, {b16, {5}}}, {256, 64}},
      // The same places, and only the bytes of a piece in the middle differ.
      {{{b16, {1}}, {f32, {5}}}, {256, 64}},
      {{{f32, {1}}, {f32, {5}}}, {256, 64}},
      // A scalar and a tensor of one element.
      {{{f32, {}}, {f32, {5}}}, {256, 64}},
  };
  std::set<std::string> digests;
  for (const auto& [tensors, geometry] : plans) {
    digests.insert(PlanDigest(*Pack(MakeInfo(tensors), geometry)).Hex());
  }
  EXPECT_EQ(digests.size(), plans.size());
}

TEST(PlanDigestTest, EveryFieldOfAPieceCounts) {
  std::vector<Bucket> buckets = *Pack(Bytes({100, 100}), {64, 64});
  const base::Digest128 plan = PlanDigest(buckets);
  const std::vector<std::function<void(Piece&)>> changes = {
      [](Piece& piece) { ++piece.tensor; },      [](Piece& piece) { ++piece.dst; },
      [](Piece& piece) { ++piece.bytes; },       [](Piece& piece) { ++piece.box.begin[0]; },
      [](Piece& piece) { ++piece.box.size[0]; }, [](Piece& piece) { ++piece.box.rank; },
  };
  for (const auto& change : changes) {
    std::vector<Bucket> changed = buckets;
    change(changed[1].pieces[0]);
    EXPECT_NE(PlanDigest(changed), plan);
  }
  std::swap(buckets[0], buckets[1]);
  EXPECT_NE(PlanDigest(buckets), plan);
}

}  // namespace
}  // namespace weight_sync::refit
