// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Each kernel of each level against a loop over elements, in memory that ends where it must.

#include "refit/layout/kernels/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/guarded_memory.h"
#include "refit/layout/kernels/levels_for_testing.h"

namespace weight_sync::refit {
namespace {

constexpr std::byte kPoison{0xa5};

// What is done to each element.
struct RowsCase {
  const char* name;
  Kernels::Rows Kernels::* rows;
  Conversion conversion;
  int64_t src_element;
  int64_t dst_element;
};
constexpr RowsCase kRowsCases[] = {
    {"copy", &Kernels::copy, Conversion::kNone, 1, 1},
    {"copy_stream", &Kernels::copy_stream, Conversion::kNone, 1, 1},
    {"f32_to_bf16", &Kernels::f32_to_bf16, Conversion::kF32ToBF16, 4, 2},
    {"f32_to_bf16_stream", &Kernels::f32_to_bf16_stream, Conversion::kF32ToBF16, 4, 2},
    {"bf16_to_f32", &Kernels::bf16_to_f32, Conversion::kBF16ToF32, 2, 4},
    {"bf16_to_f32_stream", &Kernels::bf16_to_f32_stream, Conversion::kBF16ToF32, 2, 4},
};

void FillRandom(std::byte* memory, int64_t bytes, std::mt19937& rng) {
  for (int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(rng());
}

GuardedMemory::Side RandomSide(std::mt19937& rng) {
  return rng() % 2 == 0 ? GuardedMemory::kBegin : GuardedMemory::kEnd;
}

class KernelsTest : public ::testing::TestWithParam<CpuLevel> {
 protected:
  const Kernels& kernels() const { return KernelsFor(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Levels, KernelsTest, ::testing::ValuesIn(LevelsOfThisCpu()),
                         LevelTestName);

TEST_P(KernelsTest, RowsAreCopiedAndConverted) {
  std::mt19937 rng(1);
  for (const RowsCase& rows_case : kRowsCases) {
    for (int round = 0; round < 300; ++round) {
      const int64_t rows = 1 + static_cast<int64_t>(rng() % 11);
      const int64_t count = static_cast<int64_t>(rng() % (round % 3 == 0 ? 700 : 140));
      // Now and then whole lines apart, which some kernels look for.
      const auto stride = [&](int64_t element) {
        const int64_t apart = count * element + static_cast<int64_t>(rng() % 70);
        return rng() % 2 == 0 ? apart : (apart + kLineBytes - 1) / kLineBytes * kLineBytes;
      };
      const int64_t src_row = stride(rows_case.src_element);
      const int64_t dst_row = stride(rows_case.dst_element);
      const int64_t src_bytes = (rows - 1) * src_row + count * rows_case.src_element;
      const int64_t dst_bytes = (rows - 1) * dst_row + count * rows_case.dst_element;
      const GuardedMemory src(src_bytes, RandomSide(rng)), dst(dst_bytes, RandomSide(rng));
      FillRandom(src.data(), src_bytes, rng);
      std::fill_n(dst.data(), dst_bytes, kPoison);
      std::vector<std::byte> want(static_cast<size_t>(dst_bytes), kPoison);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < count; ++i) {
          ConvertElement(rows_case.conversion, src.data() + r * src_row + i * rows_case.src_element,
                         rows_case.src_element,
                         want.data() + r * dst_row + i * rows_case.dst_element);
        }
      }
      (kernels().*rows_case.rows)(src.data(), src_row, rows, count, dst.data(), dst_row);
      kernels().fence();
      ASSERT_TRUE(std::equal(want.begin(), want.end(), dst.data()))
          << rows_case.name << ": " << rows << " rows of " << count << ", " << src_row << " and "
          << dst_row << " bytes apart, to " << static_cast<const void*>(dst.data());
    }
  }
}

TEST_P(KernelsTest, RoundingIsThatOfOneElementForEveryUpperHalf) {
  const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (const uint32_t low : lows) {
    std::vector<uint32_t> bits;
    for (uint32_t upper = 0; upper <= 0xffff; ++upper) bits.push_back(upper << 16 | low);
    std::vector<uint16_t> got(bits.size());
    kernels().f32_to_bf16(reinterpret_cast<const std::byte*>(bits.data()), 0, 1,
                          static_cast<int64_t>(bits.size()),
                          reinterpret_cast<std::byte*>(got.data()), 0);
    for (size_t i = 0; i < bits.size(); ++i) {
      float value;
      std::memcpy(&value, &bits[i], sizeof(value));
      ASSERT_EQ(got[i], FloatToBFloat16(value)) << std::hex << bits[i];
    }
  }
}

TEST_P(KernelsTest, TilesAreTransposed) {
  std::mt19937 rng(2);
  for (int logarithm = 0; logarithm < 4; ++logarithm) {
    const int64_t element = int64_t{1} << logarithm;
    const int64_t side = kTileBytes / element;
    const int64_t lane = 16 / element, line = kLineBytes / element;
    for (int round = 0; round < 100; ++round) {
      const int64_t rows = 1 + static_cast<int64_t>(rng()) % side;
      const int64_t columns = 1 + static_cast<int64_t>(rng()) % side;
      // As far as it may read and write.
      const int64_t rows_written = (rows + lane - 1) / lane * lane;
      const int64_t columns_written = (columns + line - 1) / line * line;
      const GuardedMemory tile((columns_written - 1) * kTileBytes + rows_written * element,
                               GuardedMemory::kEnd);
      FillRandom(tile.data(), (columns_written - 1) * kTileBytes + rows_written * element, rng);
      for (const bool stream : {false, true}) {
        int64_t dst_row = columns_written * element + static_cast<int64_t>(rng() % 100);
        if (stream) dst_row = dst_row / kLineBytes * kLineBytes;
        const int64_t dst_bytes = (rows_written - 1) * dst_row + columns_written * element;
        const GuardedMemory dst(dst_bytes, stream ? GuardedMemory::kBegin : RandomSide(rng));
        std::fill_n(dst.data(), dst_bytes, kPoison);
        const auto& transpose = stream ? kernels().transpose_stream : kernels().transpose;
        transpose[static_cast<size_t>(logarithm)](tile.data(), rows, columns, dst.data(), dst_row);
        kernels().fence();
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            ASSERT_EQ(std::memcmp(dst.data() + r * dst_row + c * element,
                                  tile.data() + c * kTileBytes + r * element,
                                  static_cast<size_t>(element)),
                      0)
                << "element " << r << ", " << c << " of " << rows << " x " << columns << " of "
                << element << " bytes";
          }
          const int64_t gap = r * dst_row + columns_written * element;
          const int64_t next = std::min((r + 1) * dst_row, dst_bytes);
          for (int64_t i = gap; i < next; ++i) ASSERT_EQ(dst.data()[i], kPoison);
        }
      }
    }
  }
}

TEST(CpuLevelTest, TheBestIsOneThatThisCpuHas) {
  EXPECT_TRUE(HasCpuLevel(CpuLevel::kPortable));
  EXPECT_THAT(LevelsOfThisCpu(), ::testing::Contains(BestCpuLevel()));
  EXPECT_EQ(LevelsOfThisCpu().back(), BestCpuLevel());
}

}  // namespace
}  // namespace weight_sync::refit
