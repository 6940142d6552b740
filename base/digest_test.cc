// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/digest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

std::vector<uint8_t> RandomBytes(size_t size, std::mt19937& rng) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  return bytes;
}

Digest128 SizedDigest(const std::vector<std::string>& texts) {
  Digester digester;
  for (const std::string& text : texts) digester.AddSized(text);
  return digester.Finish();
}

// xxHash's own test values for XXH3_128bits.
TEST(DigestTest, IsXxh3Of128Bits) {
  EXPECT_EQ(DigestOf("", 0).Hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(DigestOf("a", 1).Hex(), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(DigestOf(nullptr, 0).Hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(DigestTest, StreamOfAnyPiecesEqualsOneShot) {
  std::mt19937 rng(1);
  for (int round = 0; round < 300; ++round) {
    const size_t longest = round % 10 == 0 ? 100'000 : 1'000;
    const std::vector<uint8_t> bytes = RandomBytes(rng() % longest, rng);
    Digester digester;
    size_t done = 0;
    while (done < bytes.size()) {
      const size_t count = std::min<size_t>(bytes.size() - done, rng() % (bytes.size() / 4 + 2));
      digester.Add(bytes.data() + done, count);
      done += count;
    }
    EXPECT_EQ(digester.Finish().Hex(), DigestOf(bytes.data(), bytes.size()).Hex());
  }
}

TEST(DigestTest, FinishDoesNotEndTheStreamAndResetStartsAnew) {
  Digester digester;
  digester.Add("ab", 2);
  EXPECT_EQ(digester.Finish(), DigestOf("ab", 2));
  EXPECT_EQ(digester.Finish(), DigestOf("ab", 2));
  digester.Add("c", 1);
  EXPECT_EQ(digester.Finish(), DigestOf("abc", 3));
  digester.Reset();
  EXPECT_EQ(digester.Finish(), DigestOf("", 0));
}

TEST(DigestTest, EveryFlippedBitIsSeen) {
  std::mt19937 rng(2);
  for (const size_t size : {1, 3, 8, 16, 17, 128, 129, 240, 241, 1025}) {
    std::vector<uint8_t> bytes = RandomBytes(size, rng);
    const Digest128 whole = DigestOf(bytes.data(), size);
    for (size_t bit = 0; bit < size * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      EXPECT_NE(DigestOf(bytes.data(), size), whole) << "bit " << bit << " of " << size << " bytes";
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
  }
}

TEST(DigestTest, AddSizedSeparatesTexts) {
  EXPECT_NE(SizedDigest({"ab", "c"}), SizedDigest({"a", "bc"}));
  EXPECT_NE(SizedDigest({"abc"}), SizedDigest({"abc", ""}));
  EXPECT_NE(SizedDigest({"", "abc"}), SizedDigest({"abc", ""}));
  EXPECT_EQ(SizedDigest({"ab", "c"}), SizedDigest({"ab", "c"}));
}

TEST(DigestTest, HexRoundTrip) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200; ++i) {
    Digest128 digest{rng() >> (i % 64), rng() >> (i % 61)};  // also with leading zeros
    const std::string hex = digest.Hex();
    EXPECT_EQ(hex.size(), 32u);
    EXPECT_THAT(Digest128::FromHex(hex), IsOkAndHolds(digest));
    EXPECT_THAT(Digest128::FromHex(absl::AsciiStrToUpper(hex)), IsOkAndHolds(digest));
  }
  EXPECT_EQ((Digest128{1, 2}).Hex(), "00000000000000020000000000000001");
}

TEST(DigestTest, HexRefusesAnythingButThirtyTwoDigits) {
  const std::string good(32, 'a');
  std::vector<std::string> bad = {"", good.substr(1), good + "a", std::string(32, 'g')};
  // What number parsers let through at either half's edges.
  for (const size_t at : {0, 1, 15, 16, 17, 31}) {
    for (const char c : {' ', '+', '-', 'x', '\n', '\0'}) {
      bad.push_back(good);
      bad.back()[at] = c;
    }
  }
  bad.push_back("0x" + good.substr(2));
  bad.push_back(good.substr(0, 16) + "0X" + good.substr(18));
  for (const std::string& text : bad) {
    EXPECT_THAT(Digest128::FromHex(text).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'" + text + "'")));
  }
}

}  // namespace
}  // namespace weight_sync::base
