// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_dtype.h"

#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using Code = dlpack::DLDataTypeCode;
using ::testing::HasSubstr;

TEST(DlpackDtypeTest, EveryDTypeButTheComplexOneGoesThereAndBack) {
  std::set<std::tuple<Code, int, int>> seen;
  for (const DType dtype : kAllDTypes) {
    SCOPED_TRACE(SafetensorsName(dtype));
    const auto type = DTypeToDlpack(dtype);
    if (dtype == DType::kC64) {
      EXPECT_THAT(type, StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("C64")));
      continue;
    }
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(type->bits, DTypeBits(dtype));
    EXPECT_EQ(type->lanes, 1);
    EXPECT_TRUE(seen.insert({type->code, type->bits, type->lanes}).second);
    EXPECT_THAT(DTypeFromDlpack(*type), IsOkAndHolds(dtype));
  }
}

TEST(DlpackDtypeTest, TypesAreThoseOfDlpackH) {
  EXPECT_THAT(DTypeFromDlpack({Code::kInt, 8, 1}), IsOkAndHolds(DType::kI8));
  EXPECT_THAT(DTypeFromDlpack({Code::kUInt, 64, 1}), IsOkAndHolds(DType::kU64));
  EXPECT_THAT(DTypeFromDlpack({Code::kFloat, 16, 1}), IsOkAndHolds(DType::kF16));
  EXPECT_THAT(DTypeFromDlpack({Code::kBfloat, 16, 1}), IsOkAndHolds(DType::kBF16));
  EXPECT_THAT(DTypeFromDlpack({Code::kBool, 8, 1}), IsOkAndHolds(DType::kBool));
  EXPECT_THAT(DTypeFromDlpack({Code::kFloat8E4M3Fn, 8, 1}), IsOkAndHolds(DType::kF8E4M3));
  EXPECT_THAT(DTypeFromDlpack({Code::kFloat8E5M2, 8, 1}), IsOkAndHolds(DType::kF8E5M2));
  EXPECT_THAT(DTypeFromDlpack({Code::kFloat4E2M1Fn, 4, 1}), IsOkAndHolds(DType::kF4));
}

// Every code at every width: what is not one of the pairs is refused.
TEST(DlpackDtypeTest, EverythingElseIsRefused) {
  int taken = 0;
  for (int code = 0; code < 256; ++code) {
    for (int bits = 0; bits < 256; ++bits) {
      for (const uint16_t lanes : {0, 1, 2, 4}) {
        const auto dtype =
            DTypeFromDlpack({static_cast<Code>(code), static_cast<uint8_t>(bits), lanes});
        if (dtype.ok()) {
          ++taken;
          EXPECT_EQ(DTypeBits(*dtype), bits);
          EXPECT_EQ(lanes, 1);
        } else {
          EXPECT_EQ(dtype.status().code(), absl::StatusCode::kUnimplemented);
        }
      }
    }
  }
  EXPECT_EQ(taken, 21);
}

TEST(DlpackDtypeTest, AnErrorSaysWhichType) {
  EXPECT_THAT(DTypeFromDlpack({Code::kComplex, 64, 1}).status().message(),
              HasSubstr("kDLComplex, 64 bits"));
  EXPECT_THAT(DTypeFromDlpack({Code::kFloat, 32, 4}).status().message(),
              HasSubstr("kDLFloat, 32 bits, 4 lanes"));
  EXPECT_THAT(DTypeFromDlpack({static_cast<Code>(99), 8, 1}).status().message(),
              HasSubstr("type code 99, 8 bits"));
}

}  // namespace
}  // namespace weight_sync::refit
