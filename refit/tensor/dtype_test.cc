// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dtype.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::testing::HasSubstr;

TEST(DTypeTest, EveryNameLeadsBackToItsType) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(ParseDType(SafetensorsName(dtype)).value(), dtype);
    EXPECT_EQ(ParseSafetensorsDType(SafetensorsName(dtype)).value(), dtype);
    EXPECT_EQ(ParseDType(NumpyName(dtype)).value(), dtype);
    if (!TorchName(dtype).empty()) {
      EXPECT_EQ(ParseDType(TorchName(dtype)).value(), dtype);
    }
  }
}

TEST(DTypeTest, OnlyTheF6TypesHaveNoTorchName) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(TorchName(dtype).empty(), DTypeBits(dtype) == 6) << SafetensorsName(dtype);
  }
}

TEST(DTypeTest, SpellsBfloat16AsEachProgramDoes) {
  EXPECT_EQ(SafetensorsName(DType::kBF16), "BF16");
  EXPECT_EQ(TorchName(DType::kBF16), "torch.bfloat16");
  EXPECT_EQ(NumpyName(DType::kBF16), "bfloat16");
  EXPECT_EQ(DTypeBits(DType::kBF16), 16);
}

TEST(DTypeTest, SpellsFp8AsEachProgramDoes) {
  EXPECT_EQ(SafetensorsName(DType::kF8E4M3), "F8_E4M3");
  EXPECT_EQ(TorchName(DType::kF8E4M3), "torch.float8_e4m3fn");
  EXPECT_EQ(NumpyName(DType::kF8E4M3), "float8_e4m3fn");
  EXPECT_EQ(DTypeBits(DType::kF8E4M3), 8);
}

TEST(DTypeTest, SubByteTypesAreTheOnesBelowEightBits) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(IsSubByte(dtype), DTypeBits(dtype) < 8) << SafetensorsName(dtype);
  }
  EXPECT_TRUE(IsSubByte(DType::kF4));
  EXPECT_FALSE(IsSubByte(DType::kBool));
}

TEST(DTypeTest, UnknownNamesAreRefusedWithTheListOfKnownOnes) {
  for (const std::string name : {"", "f32", "float", "torch.f32", "BF16 ", "F8"}) {
    const absl::Status status = ParseDType(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("'", name, "'")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("BF16 (torch.bfloat16, bfloat16)"));
  }
}

TEST(DTypeTest, SafetensorsNamesAreNotMixedWithOthers) {
  const absl::Status status = ParseSafetensorsDType("float32").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("F32"));
}

TEST(DTypeTest, PrintsItsSafetensorsName) { EXPECT_EQ(absl::StrCat(DType::kF8E8M0), "F8_E8M0"); }

}  // namespace
}  // namespace weight_sync::refit
