// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/convert.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(ConvertTest, EveryBFloat16SurvivesFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t value = static_cast<uint16_t>(bits);
    ASSERT_EQ(FloatToBFloat16(BFloat16ToFloat(value)), value) << bits;
  }
}

TEST(ConvertTest, RoundsToTheNearestAndTiesToEven) {
  // Every upper half, with the lower halves around the tie.
  for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
    for (const uint32_t sign : {0u, 0x8000u}) {
      const uint32_t base = (upper | sign) << 16;
      const uint16_t down = static_cast<uint16_t>(upper | sign);
      const uint16_t up = static_cast<uint16_t>(down + 1);  // of the largest: infinity
      ASSERT_EQ(FloatToBFloat16(FloatOf(base)), down);
      ASSERT_EQ(FloatToBFloat16(FloatOf(base + 1)), down);
      ASSERT_EQ(FloatToBFloat16(FloatOf(base + 0x7fff)), down);
      ASSERT_EQ(FloatToBFloat16(FloatOf(base + 0x8000)), upper % 2 == 0 ? down : up);
      ASSERT_EQ(FloatToBFloat16(FloatOf(base + 0x8001)), up);
      ASSERT_EQ(FloatToBFloat16(FloatOf(base + 0xffff)), up);
    }
  }
}

TEST(ConvertTest, NaNStaysNaNAndInfinityInfinity) {
  for (const uint32_t sign : {0u, 0x80000000u}) {
    EXPECT_EQ(FloatToBFloat16(FloatOf(0x7f800000u | sign)), (0x7f800000u | sign) >> 16);
    // Payloads in the lower half only, which truncation would lose and rounding carry over.
    for (const uint32_t payload :
         {1u, 0x7fffu, 0x8000u, 0xffffu, 0x7fffffu, 0x400000u, 0x3fffffu}) {
      const uint16_t rounded = FloatToBFloat16(FloatOf(0x7f800000u | sign | payload));
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(rounded))) << payload;
      EXPECT_EQ(rounded >> 15, sign >> 31);
    }
  }
}

TEST(ConvertTest, OnlyFloatAndBFloat16AreConverted) {
  for (const DType from : kAllDTypes) {
    EXPECT_THAT(ConversionBetween(from, from), IsOkAndHolds(Conversion::kNone));
    for (const DType to : kAllDTypes) {
      if (from == to) continue;
      if (from == DType::kF32 && to == DType::kBF16) {
        EXPECT_THAT(ConversionBetween(from, to), IsOkAndHolds(Conversion::kF32ToBF16));
      } else if (from == DType::kBF16 && to == DType::kF32) {
        EXPECT_THAT(ConversionBetween(from, to), IsOkAndHolds(Conversion::kBF16ToF32));
      } else {
        EXPECT_THAT(ConversionBetween(from, to).status(),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             AllOf(HasSubstr(std::string(SafetensorsName(from))),
                                   HasSubstr(std::string(SafetensorsName(to))))));
      }
    }
  }
}

}  // namespace
}  // namespace weight_sync::refit
