// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The kernel's grid on the CPU, thread by thread.

#include "refit/layout/cuda/permute_copy.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "refit/layout/convert.h"
#include "refit/layout/cuda/cuda_copy_program.h"
#include "refit/layout/cuda/random_programs.h"
#include "refit/layout/cuda/simulated_grid.h"

namespace weight_sync::refit::cuda {
namespace {

constexpr std::byte kPoison{0xa5};

// Counts how often each byte is written.
class CountingMemory {
 public:
  CountingMemory(const std::byte* begin, std::vector<int>* writes)
      : begin_(begin), writes_(writes) {}

  template <class Value>
  void Write(std::byte* to, Value value, bool aligned) const {
    for (size_t i = 0; i < sizeof(Value); ++i) {
      ++writes_->at(static_cast<size_t>(to - begin_) + i);
    }
    DeviceMemory().Write(to, value, aligned);
  }

 private:
  const std::byte* begin_;
  std::vector<int>* writes_;
};

TEST(PermuteCopyTest, EveryProgramWritesWhatTheCpuDoesEachByteOnce) {
  std::mt19937 rng(11);
  int transposed = 0, elements = 0, runs = 0, many_tiles = 0;
  for (int round = 0; round < 150; ++round) {
    const RandomProgram random = MakeRandomProgram(rng);
    const std::vector<const std::byte*> bases = random.bases();
    std::vector<uint64_t> arrays;
    for (const std::byte* base : bases) arrays.push_back(reinterpret_cast<uint64_t>(base));
    for (int b = 0; b < random.program.buckets(); ++b) {
      const auto bytes = static_cast<size_t>(random.bucket_bytes[static_cast<size_t>(b)]) + 64;
      std::vector<std::byte> want(bytes, kPoison), other(bytes, ~kPoison), got(bytes, kPoison);
      random.program.Run(b, bases, want.data());
      random.program.Run(b, bases, other.data());
      const PlannedBucket planned = PlanBucket(random.program, b);
      std::vector<int> writes(bytes);
      SimulateGrid({planned.copies.data(), static_cast<int64_t>(planned.copies.size()),
                    arrays.data(), got.data()},
                   planned.tiles, CountingMemory(got.data(), &writes));
      ASSERT_TRUE(got == want) << "round " << round << " bucket " << b;
      for (size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(writes[i], want[i] == other[i] ? 1 : 0) << "byte " << i << " in round " << round;
      }
      for (const PermuteCopy& copy : planned.copies) {
        transposed += copy.way == Way::kTransposed ? 1 : 0;
        elements += copy.way == Way::kElements ? 1 : 0;
        runs += copy.way == Way::kRuns ? 1 : 0;
        many_tiles += copy.tiles_across > 1 && copy.tiles_down > 1 ? 1 : 0;
      }
    }
  }
  // Of each kind there were some.
  EXPECT_GT(std::min({transposed, elements, runs, many_tiles}), 20);
}

TEST(PermuteCopyTest, RoundsAsTheCpuDoes) {
  for (uint32_t upper = 0; upper <= 0xffff; ++upper) {
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const uint32_t bits = upper << 16 | low;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      ASSERT_EQ(RoundToBFloat16(bits), FloatToBFloat16(value)) << std::hex << bits;
    }
  }
}

TEST(PermuteCopyTest, TheCopyOfATileIsFoundWhereverItIs) {
  std::vector<PermuteCopy> copies(5);
  const int64_t first[] = {0, 1, 4, 5, 1'000'000'000'000};
  for (size_t i = 0; i < copies.size(); ++i) copies[i].first_tile = first[i];
  const auto index = [&](int64_t tile) { return &CopyOfTile(copies.data(), 5, tile) - &copies[0]; };
  for (size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(index(first[i]), static_cast<ptrdiff_t>(i));
  }
  for (size_t i = 1; i < copies.size(); ++i) {
    EXPECT_EQ(index(first[i] - 1), static_cast<ptrdiff_t>(i) - 1);
  }
  EXPECT_EQ(index(2'000'000'000'000), 4);
}

TEST(PermuteCopyTest, AlignmentIsThatOfAllAddends) {
  EXPECT_EQ(AlignmentOf(0, 16), 16);
  EXPECT_EQ(AlignmentOf(48, 16), 16);
  EXPECT_EQ(AlignmentOf(24, 16), 8);
  EXPECT_EQ(AlignmentOf(24, 4), 4);
  EXPECT_EQ(AlignmentOf(7, 16), 1);
}

}  // namespace
}  // namespace weight_sync::refit::cuda
