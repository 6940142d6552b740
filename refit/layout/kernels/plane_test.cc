// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/kernels/plane.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/guarded_memory.h"
#include "refit/layout/kernels/levels_for_testing.h"

namespace weight_sync::refit {
namespace {

constexpr std::byte kPoison{0xa5};

struct ElementCase {
  Conversion conversion;
  int64_t src;
  int64_t dst;
};
constexpr ElementCase kElementCases[] = {
    {Conversion::kNone, 1, 1}, {Conversion::kNone, 2, 2},      {Conversion::kNone, 4, 4},
    {Conversion::kNone, 8, 8}, {Conversion::kF32ToBF16, 4, 2}, {Conversion::kBF16ToF32, 2, 4},
};

// The bytes from the lowest to past the highest that a side touches, and where its first element is.
std::pair<int64_t, int64_t> Extent(const Plane& plane, int64_t row, int64_t column,
                                   int64_t element) {
  const int64_t rows = (plane.rows - 1) * row, columns = (plane.columns - 1) * column;
  const int64_t lowest = std::min<int64_t>(rows, 0) + std::min<int64_t>(columns, 0);
  const int64_t highest = std::max<int64_t>(rows, 0) + std::max<int64_t>(columns, 0);
  return {highest - lowest + element, -lowest};
}

class PlaneTest : public ::testing::TestWithParam<CpuLevel> {
 protected:
  void Check(PlaneKind kind, const ElementCase& element, const Plane& plane) {
    const auto [src_bytes, src_first] = Extent(plane, plane.src_row, plane.src_column, element.src);
    const auto [dst_bytes, dst_first] = Extent(plane, plane.dst_row, plane.dst_column, element.dst);
    const GuardedMemory src(src_bytes, Side()), dst(dst_bytes, Side());
    uint32_t value = rng_();
    for (int64_t i = 0; i < src_bytes; ++i) {
      value = value * 1664525u + 1013904223u;  // faster than rng_, and random enough
      src.data()[i] = static_cast<std::byte>(value >> 24);
    }
    std::vector<std::byte> want(static_cast<size_t>(dst_bytes), kPoison);
    for (int64_t r = 0; r < plane.rows; ++r) {
      for (int64_t c = 0; c < plane.columns; ++c) {
        ConvertElement(
            element.conversion, src.data() + src_first + r * plane.src_row + c * plane.src_column,
            element.src, want.data() + dst_first + r * plane.dst_row + c * plane.dst_column);
      }
    }
    const PlaneKernel kernel = KernelFor(kind, element.dst, element.conversion);
    const Kernels& kernels = KernelsFor(GetParam());
    for (const bool stream : {false, true}) {
      std::fill_n(dst.data(), dst_bytes, kPoison);
      kernel(kernels, plane, stream, src.data() + src_first, dst.data() + dst_first);
      kernels.fence();
      ASSERT_TRUE(std::equal(want.begin(), want.end(), dst.data()))
          << "kind " << static_cast<int>(kind) << (stream ? ", streamed" : "") << ": " << plane.rows
          << " x " << plane.columns << " of " << element.src << " to " << element.dst
          << " bytes, rows " << plane.src_row << " and " << plane.dst_row << ", columns "
          << plane.src_column << " and " << plane.dst_column << " apart";
    }
  }

  GuardedMemory::Side Side() {
    return rng_() % 2 == 0 ? GuardedMemory::kBegin : GuardedMemory::kEnd;
  }
  int64_t Below(int64_t end) { return static_cast<int64_t>(rng_() % static_cast<uint64_t>(end)); }
  // So many bytes or a few more, in half of the cases whole lines.
  int64_t Apart(int64_t bytes) {
    const int64_t apart = bytes + (Below(2) == 0 ? 0 : Below(100));
    return Below(2) == 0 ? apart : (apart + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Around so many, or few.
  int64_t Around(int64_t count) {
    return std::max<int64_t>(1, Below(4) == 0 ? Below(12) : count * Below(4) - 3 + Below(7));
  }

  std::mt19937 rng_{3};
};
INSTANTIATE_TEST_SUITE_P(Levels, PlaneTest, ::testing::ValuesIn(LevelsOfThisCpu()), LevelTestName);

TEST_P(PlaneTest, TransposesOfEverySizeAndAlignment) {
  for (const ElementCase& element : kElementCases) {
    const int64_t tile = kTileBytes / element.dst;
    for (int round = 0; round < 50; ++round) {
      const int64_t rows = Around(tile), columns = Around(tile);
      Check(PlaneKind::kTranspose, element,
            {rows, columns, element.src, Apart(rows * element.src), Apart(columns * element.dst),
             element.dst});
    }
  }
}

TEST_P(PlaneTest, TransposesOfMoreRowsThanABlock) {
  for (const ElementCase& element : kElementCases) {
    for (const int64_t rows : {1023, 1024, 1025, 2500}) {
      const int64_t columns = 1 + Below(40);
      Check(PlaneKind::kTranspose, element,
            {rows, columns, element.src, Apart(rows * element.src), Apart(columns * element.dst),
             element.dst});
    }
  }
}

TEST_P(PlaneTest, RowsOfEveryLength) {
  for (const ElementCase& element : kElementCases) {
    if (element.conversion == Conversion::kNone && element.src > 1) continue;
    for (int round = 0; round < 100; ++round) {
      const int64_t rows = 1 + Below(9);
      const int64_t columns = round % 4 == 0 ? 1 + Below(40'000) : 1 + Below(600);
      Check(PlaneKind::kRows, element,
            {rows, columns, Apart(columns * element.src), element.src, Apart(columns * element.dst),
             element.dst});
    }
  }
}

TEST_P(PlaneTest, ElementsOfAnyStridesInTheSource) {
  for (const ElementCase& element : kElementCases) {
    for (int round = 0; round < 100; ++round) {
      const int64_t rows = 1 + Below(9), columns = 1 + Below(30);
      const int64_t dst_column = element.dst + Below(5);
      const int64_t dst_row = columns * dst_column + Below(20);
      Check(PlaneKind::kElements, element,
            {rows, columns, Below(200) - 100, Below(60) - 30, Below(2) == 0 ? dst_row : -dst_row,
             dst_column});
    }
  }
}

}  // namespace
}  // namespace weight_sync::refit
