// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/kernels/strided_copy.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/levels_for_testing.h"

namespace weight_sync::refit {
namespace {

constexpr std::byte kPoison{0xa5};

// A copy over dimensions that lie in any order, apart or not, on each side.
struct RandomCopy {
  std::vector<CopyDim> dims;  // fastest first in the destination
  int64_t run;
  Conversion conversion;
  std::vector<std::byte> src;  // exactly as long as what is read
  int64_t src_first = 0;       // where the first element is in it
  int64_t dst_bytes = 0;
};

RandomCopy MakeRandomCopy(std::mt19937& rng) {
  const auto below = [&rng](uint64_t end) { return static_cast<int64_t>(rng() % end); };
  RandomCopy copy;
  copy.conversion = static_cast<Conversion>(below(3));
  const int64_t runs[] = {1, 2, 4, 8, 2, 2, 3, 24, 640};
  copy.run = runs[below(9)];
  const bool narrow = copy.conversion == Conversion::kF32ToBF16;
  const bool wide = copy.conversion == Conversion::kBF16ToF32;
  const int64_t src_element = narrow ? 4 : wide ? 2 : copy.run;
  const int64_t dst_element = narrow ? 2 : wide ? 4 : copy.run;
  const int rank = static_cast<int>(below(5));
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t most =
        std::max<int64_t>(2, std::min<int64_t>(300, 12'000 / dst_element / elements));
    const int64_t size = below(3) == 0 ? 1 + below(4) : 1 + below(static_cast<uint64_t>(most));
    elements *= size;
    copy.dims.push_back({size, 0, 0});
  }
  int64_t stride = dst_element;
  for (CopyDim& dim : copy.dims) {
    dim.dst_stride = stride;
    stride = stride * dim.size + (below(3) == 0 ? below(130) : 0);
  }
  copy.dst_bytes = dst_element;
  for (const CopyDim& dim : copy.dims) copy.dst_bytes += (dim.size - 1) * dim.dst_stride;
  // In another order in the source; a dimension may be reversed, or read again and again.
  std::vector<size_t> order(copy.dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (below(4) != 0) std::shuffle(order.begin(), order.end(), rng);
  stride = src_element;
  int64_t lowest = 0, highest = 0;
  for (const size_t i : order) {
    CopyDim& dim = copy.dims[i];
    const int64_t kind = below(8);
    dim.src_stride = kind == 0 ? 0 : kind == 1 ? -stride : stride;
    (dim.src_stride < 0 ? lowest : highest) += (dim.size - 1) * dim.src_stride;
    stride = stride * dim.size + (below(3) == 0 ? below(130) : 0);
  }
  copy.src.resize(static_cast<size_t>(highest - lowest + src_element));
  copy.src_first = -lowest;
  for (std::byte& byte : copy.src) byte = static_cast<std::byte>(rng());
  return copy;
}

// By its definition, an element at a time.
std::vector<std::byte> Expected(const RandomCopy& copy) {
  std::vector<std::byte> bytes(static_cast<size_t>(copy.dst_bytes), kPoison);
  std::vector<int64_t> index(copy.dims.size());
  for (;;) {
    int64_t src = copy.src_first, dst = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      src += index[i] * copy.dims[i].src_stride;
      dst += index[i] * copy.dims[i].dst_stride;
    }
    ConvertElement(copy.conversion, copy.src.data() + src, copy.run, bytes.data() + dst);
    size_t i = 0;
    for (; i < index.size() && ++index[i] == copy.dims[i].size; ++i) index[i] = 0;
    if (i == index.size()) return bytes;
  }
}

class StridedCopyTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, StridedCopyTest, ::testing::ValuesIn(LevelsOfThisCpu()),
                         LevelTestName);

TEST_P(StridedCopyTest, WhateverTheStridesWholeAndInParts) {
  const Kernels& kernels = KernelsFor(GetParam());
  std::mt19937 rng(4);
  int cut = 0;
  for (int round = 0; round < 250; ++round) {
    const RandomCopy random = MakeRandomCopy(rng);
    const std::vector<std::byte> want = Expected(random);
    const StridedCopy copy = StridedCopy::Plan(random.dims, random.run, random.conversion);
    const std::byte* const src = random.src.data() + random.src_first;
    for (const bool stream : {false, true}) {
      std::vector<std::byte> got(want.size(), kPoison);
      copy.Run(kernels, stream, src, got.data());
      ASSERT_EQ(got, want) << "round " << round;

      // Each part alone, so that one that writes another's bytes is seen.
      std::vector<std::byte> all(want.size(), kPoison);
      std::vector<bool> written(want.size());
      int parts_with_bytes = 0;
      for (int64_t begin = 0, end; begin < copy.bytes(); begin = end) {
        end = std::min(copy.bytes(), begin + 1 + static_cast<int64_t>(rng()) % copy.bytes());
        std::vector<std::byte> part(want.size(), kPoison), again(want.size(), std::byte{0x5a});
        copy.RunPart(kernels, stream, begin, end, src, part.data());
        copy.RunPart(kernels, stream, begin, end, src, again.data());
        bool any = false;
        for (size_t i = 0; i < part.size(); ++i) {
          if (part[i] != again[i]) continue;  // not written
          any = true;
          ASSERT_EQ(part[i], want[i]) << "round " << round << " byte " << i;
          ASSERT_FALSE(written[i]) << "round " << round << " byte " << i << ", twice";
          written[i] = true;
          all[i] = part[i];
        }
        parts_with_bytes += any ? 1 : 0;
      }
      ASSERT_EQ(all, want) << "round " << round;
      cut += parts_with_bytes > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 100);  // copies were indeed cut
}

TEST(StridedCopyPartsTest, PartsOfALargeCopyAreAboutAsLargeAsTheyShouldBe) {
  // [in, out] to [out, in], of which out has more tiles.
  const int64_t in = 300, out = 6000;
  const CopyDim dims[] = {{in, out * 2, 2}, {out, 2, in * 2}};
  const StridedCopy copy = StridedCopy::Plan(dims, 2, Conversion::kNone);
  EXPECT_EQ(copy.bytes(), in * out * 2);
  const std::vector<std::byte> src(static_cast<size_t>(copy.bytes()), std::byte{1});
  for (int part = 0; part < 3; ++part) {
    std::vector<std::byte> dst(src.size());
    copy.RunPart(KernelsFor(BestCpuLevel()), false, copy.bytes() * part / 3,
                 copy.bytes() * (part + 1) / 3, src.data(), dst.data());
    const auto written = std::count(dst.begin(), dst.end(), std::byte{1});
    EXPECT_NEAR(static_cast<double>(written), static_cast<double>(copy.bytes()) / 3,
                static_cast<double>(copy.bytes()) / 20);
  }
}

}  // namespace
}  // namespace weight_sync::refit
