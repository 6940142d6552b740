// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "xxhash.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "third_party/smoke_tests/xxhash_dispatch.h"

namespace {

TEST(XxhashTest, MatchesThePublishedDigestOfNothing) {
  EXPECT_EQ(XXH3_64bits(nullptr, 0), 0x2d06800538d394c2u);
}

TEST(XxhashTest, DispatchedAndPlainDigestsAgree) {
  std::vector<uint8_t> bytes(1 << 20);
  uint32_t x = 1;
  for (uint8_t& byte : bytes) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(x >> 24);
  }
  for (size_t size : {size_t{0}, size_t{1}, size_t{17}, size_t{240}, size_t{241}, size_t{4096},
                      bytes.size() - 1, bytes.size()}) {
    const uint64_t plain = XXH3_64bits(bytes.data(), size);
    EXPECT_EQ(DispatchedXxh3(bytes.data(), size), plain) << size;
    EXPECT_EQ(DispatchedXxh3InTwoParts(bytes.data(), size), plain) << size;
  }
}

}  // namespace
