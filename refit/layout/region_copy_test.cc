// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/convert.h"
#include "refit/testing/box_elements.h"
#include "refit/testing/random_regions.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using testing::BoxBytes;
using ::testing::HasSubstr;
using testing::MakeRandomRelation;
using testing::RandomRelation;

constexpr std::byte kPoison{0xa5};

std::vector<int64_t> RowMajor(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[static_cast<size_t>(dim)] = stride;
    stride *= shape[dim];
  }
  return strides;
}

RegionTemplate Relate(const RandomRelation& random) {
  return RegionTemplate::Create(AxisPattern::Parse(random.a_text).value(),
                                AxisPattern::Parse(random.b_text).value(), random.sizes)
      .value();
}

// One element as A must hold it.
std::vector<std::byte> Converted(const std::byte* src, DType from, DType to) {
  if (from == to) return std::vector<std::byte>(src, src + DTypeBits(from) / 8);
  std::vector<std::byte> out(static_cast<size_t>(DTypeBits(to)) / 8);
  if (to == DType::kBF16) {
    float value;
    std::memcpy(&value, src, 4);
    const uint16_t rounded = FloatToBFloat16(value);
    std::memcpy(out.data(), &rounded, 2);
  } else {
    uint16_t value;
    std::memcpy(&value, src, 2);
    const float wide = BFloat16ToFloat(value);
    std::memcpy(out.data(), &wide, 4);
  }
  return out;
}

TEST(RegionCopyTest, EveryCutOfEveryRelationEqualsBruteForce) {
  const std::vector<std::pair<DType, DType>> dtypes = {
      {DType::kU8, DType::kU8},   {DType::kBF16, DType::kBF16}, {DType::kF32, DType::kF32},
      {DType::kI64, DType::kI64}, {DType::kF32, DType::kBF16},  {DType::kBF16, DType::kF32}};
  std::mt19937 rng(1);
  for (int round = 0; round < 600; ++round) {
    const RandomRelation random = MakeRandomRelation(rng);
    SCOPED_TRACE(random.a_text + " <-> " + random.b_text);
    const auto [from, to] = dtypes[rng() % dtypes.size()];
    const int64_t from_bytes = DTypeBits(from) / 8, to_bytes = DTypeBits(to) / 8;
    const RegionTemplate related = Relate(random);
    const auto combinations = random.Combinations();
    const std::map<std::string, int64_t>& indices = combinations[rng() % combinations.size()];
    std::vector<int64_t> values;
    for (const std::string& name : related.index_names()) values.push_back(indices.at(name));
    const Region region = related.At(values);

    std::vector<std::byte> b(static_cast<size_t>(random.b_shape.num_elements() * from_bytes));
    for (std::byte& byte : b) byte = static_cast<std::byte>(rng());
    std::vector<std::vector<std::byte>> a(static_cast<size_t>(random.a_shape.num_elements()),
                                          std::vector<std::byte>(to_bytes, kPoison));
    for (const auto& [to_element, from_element] : random.Pairs(indices)) {
      a[static_cast<size_t>(to_element)] =
          Converted(b.data() + from_element * from_bytes, from, to);
    }

    // A in pieces of a random number of elements.
    const int64_t chunk =
        1 + static_cast<int64_t>(rng()) % std::max<int64_t>(1, random.a_shape.num_elements());
    CopyProgram program;
    std::vector<std::byte> expected;
    for (int64_t begin = 0; begin < random.a_shape.num_elements(); begin += chunk) {
      program.StartBucket();
      std::vector<Box> boxes;
      const int64_t end = std::min(begin + chunk, random.a_shape.num_elements());
      CutFlatRange(random.a_shape, begin, end, boxes);
      int64_t dst = 0;
      for (const Box& box : boxes) {
        ASSERT_THAT(
            AppendRegion(region, {0, from, RowMajor(random.b_shape)}, box, to, dst, program),
            IsOk());
        dst += box.num_elements() * to_bytes;
      }
      std::vector<std::byte> got(static_cast<size_t>(dst), kPoison);
      const std::vector<const std::byte*> bases = {b.data()};
      program.Run(program.buckets() - 1, bases, got.data());
      std::vector<std::byte> want;
      for (int64_t element = begin; element < end; ++element) {
        const auto& bytes = a[static_cast<size_t>(element)];
        want.insert(want.end(), bytes.begin(), bytes.end());
      }
      ASSERT_EQ(got, want) << "elements " << begin << " to " << end;
    }
  }
}

TEST(RegionCopyTest, BoxesInsideEveryDimensionEqualTheWhole) {
  std::mt19937 rng(2);
  for (int round = 0; round < 400; ++round) {
    const RandomRelation random = MakeRandomRelation(rng);
    SCOPED_TRACE(random.a_text + " <-> " + random.b_text);
    const RegionTemplate related = Relate(random);
    const Region region = related.At(std::vector<int64_t>(related.index_names().size(), 0));
    std::vector<std::byte> b(static_cast<size_t>(random.b_shape.num_elements()) * 2);
    for (std::byte& byte : b) byte = static_cast<std::byte>(rng());
    const std::vector<const std::byte*> bases = {b.data()};
    const std::vector<int64_t> strides = RowMajor(random.b_shape);
    const RegionSource source = {0, DType::kF16, strides};

    Box box = Box::Whole(random.a_shape);
    for (int dim = 0; dim < box.rank; ++dim) {
      box.begin[dim] = static_cast<int64_t>(rng()) % random.a_shape[dim];
      box.size[dim] = 1 + static_cast<int64_t>(rng()) % (random.a_shape[dim] - box.begin[dim]);
    }
    CopyProgram program;
    program.StartBucket();
    ASSERT_THAT(AppendRegion(region, source, Box::Whole(random.a_shape), DType::kF16, 0, program),
                IsOk());
    program.StartBucket();
    ASSERT_THAT(AppendRegion(region, source, box, DType::kF16, 0, program), IsOk());
    std::vector<std::byte> whole(static_cast<size_t>(random.a_shape.num_elements()) * 2, kPoison);
    std::vector<std::byte> part(static_cast<size_t>(box.num_elements()) * 2, kPoison);
    program.Run(0, bases, whole.data());
    program.Run(1, bases, part.data());
    ASSERT_EQ(part, BoxBytes(whole, random.a_shape, 2, box));
  }
}

// Against the direct copy, with a source that is not row-major: the message is the same from any
// memory, holds each byte once, and unpacks to the same box.
TEST(RegionCopyTest, PackedAndUnpackedEqualsTheDirectCopy) {
  std::mt19937 rng(3);
  int apart = 0, shared = 0;
  for (int round = 0; round < 2000; ++round) {
    const RandomRelation random = MakeRandomRelation(rng);
    SCOPED_TRACE(random.a_text + " <-> " + random.b_text);
    const RegionTemplate related = Relate(random);
    const auto combinations = random.Combinations();
    const std::map<std::string, int64_t>& indices = combinations[rng() % combinations.size()];
    std::vector<int64_t> values;
    for (const std::string& name : related.index_names()) values.push_back(indices.at(name));
    const Region region = related.At(values);
    Box box = Box::Whole(random.a_shape);
    for (int dim = 0; dim < box.rank; ++dim) {
      box.begin[dim] = static_cast<int64_t>(rng()) % random.a_shape[dim];
      box.size[dim] = 1 + static_cast<int64_t>(rng()) % (random.a_shape[dim] - box.begin[dim]);
    }
    const DType from = rng() % 2 == 0 ? DType::kF32 : DType::kBF16;

    // The same values row-major, and with the dimensions in reverse order in memory.
    const std::vector<int64_t> row_major = RowMajor(random.b_shape);
    std::vector<int64_t> reversed(row_major.size());
    int64_t stride = 1;
    for (int dim = 0; dim < random.b_shape.rank(); ++dim) {
      reversed[static_cast<size_t>(dim)] = stride;
      stride *= random.b_shape[dim];
    }
    const int64_t bytes = DTypeBits(from) / 8;
    std::vector<std::byte> b(static_cast<size_t>(random.b_shape.num_elements() * bytes));
    for (std::byte& byte : b) byte = static_cast<std::byte>(rng());
    std::vector<std::byte> b_reversed(b.size());
    for (int64_t i = 0; i < random.b_shape.num_elements(); ++i) {
      int64_t rest = i, at = 0;
      for (int dim = random.b_shape.rank() - 1; dim >= 0; --dim) {
        at += rest % random.b_shape[dim] * reversed[static_cast<size_t>(dim)];
        rest /= random.b_shape[dim];
      }
      std::memcpy(&b_reversed[static_cast<size_t>(at * bytes)], &b[static_cast<size_t>(i * bytes)],
                  static_cast<size_t>(bytes));
    }

    const int64_t packed = PackedBytes(region, box, DType::kBF16).value();
    const auto pack = [&](const std::vector<std::byte>& memory,
                          const std::vector<int64_t>& strides) {
      CopyProgram program;
      program.StartBucket();
      EXPECT_THAT(AppendPacked(region, {0, from, strides}, box, DType::kBF16, 6, program),
                  IsOkAndHolds(packed));
      std::vector<std::byte> message(static_cast<size_t>(6 + packed), kPoison);
      program.Run(0, std::vector<const std::byte*>{memory.data()}, message.data());
      return message;
    };
    const std::vector<std::byte> message = pack(b, row_major);
    ASSERT_EQ(pack(b_reversed, reversed), message);

    CopyProgram direct, unpack;
    direct.StartBucket();
    ASSERT_THAT(AppendRegion(region, {0, from, row_major}, box, DType::kBF16, 4, direct), IsOk());
    unpack.StartBucket();
    ASSERT_THAT(AppendUnpacked(region, 0, 6, box, DType::kBF16, 4, unpack), IsOkAndHolds(packed));
    std::vector<std::byte> expected(static_cast<size_t>(4 + box.num_elements() * 2), kPoison);
    std::vector<std::byte> got = expected;
    direct.Run(0, std::vector<const std::byte*>{b.data()}, expected.data());
    unpack.Run(0, std::vector<const std::byte*>{message.data()}, got.data());
    ASSERT_EQ(got, expected);
    ++(packed == 0 ? apart : shared);
  }
  EXPECT_GT(apart, 100);
  EXPECT_GT(shared, 1000);
}

int64_t CopiesFor(const char* a, const char* b, const AxisSizes& sizes,
                  const std::vector<int64_t>& indices = {}) {
  const RegionTemplate related =
      RegionTemplate::Create(AxisPattern::Parse(a).value(), AxisPattern::Parse(b).value(), sizes)
          .value();
  CopyProgram program;
  program.StartBucket();
  EXPECT_THAT(AppendRegion(related.At(indices), {0, DType::kBF16, RowMajor(related.b_shape())},
                           Box::Whole(related.a_shape()), DType::kBF16, 0, program),
              IsOk());
  return program.copies();
}

TEST(RegionCopyTest, WhatIsOneCopyIsOneCopy) {
  EXPECT_EQ(CopiesFor("v h", "v h", {{"v", 7}, {"h", 5}}), 1);
  EXPECT_EQ(CopiesFor("(n d)", "n d", {{"n", 7}, {"d", 5}}), 1);
  EXPECT_EQ(CopiesFor("m h", "{e} h m", {{"e", 3}, {"m", 7}, {"h", 5}}, {2}), 1);
  EXPECT_EQ(CopiesFor("(n d) h", "h n d", {{"n", 2}, {"d", 3}, {"h", 5}}), 1);
}

TEST(RegionCopyTest, CutOfAMergedDimensionThatIsContiguousAtTheSourceStaysOneCopy) {
  // Rows 1 to 4 of (n d) with d = 3: parts of two heads, but one run at the source.
  const RegionTemplate related =
      RegionTemplate::Create(AxisPattern::Parse("(n d) h").value(),
                             AxisPattern::Parse("n d h").value(), {{"n", 2}, {"d", 3}, {"h", 5}})
          .value();
  Box box = Box::Whole({6, 5});
  box.begin[0] = 1;
  box.size[0] = 4;
  CopyProgram program;
  program.StartBucket();
  ASSERT_THAT(AppendRegion(related.At({}), {0, DType::kBF16, RowMajor({2, 3, 5})}, box,
                           DType::kBF16, 0, program),
              IsOk());
  EXPECT_EQ(program.copies(), 1);
}

TEST(RegionCopyTest, RefusesDTypesWhoseValuesItCannotKeep) {
  const RegionTemplate related = RegionTemplate::Create(AxisPattern::Parse("a").value(),
                                                        AxisPattern::Parse("a").value(), {{"a", 4}})
                                     .value();
  CopyProgram program;
  program.StartBucket();
  const std::vector<int64_t> strides = {1};
  EXPECT_THAT(AppendRegion(related.At({}), {0, DType::kF16, strides}, Box::Whole({4}), DType::kBF16,
                           0, program),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F16 to BF16")));
  EXPECT_THAT(AppendRegion(related.At({}), {0, DType::kF4, strides}, Box::Whole({4}), DType::kF4, 0,
                           program),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F4")));
  EXPECT_EQ(program.copies(), 0);
}

}  // namespace
}  // namespace weight_sync::refit
