// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/parameters.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

// Enough elements that two tensors are equal only by a fault; a multiple of 8, so that every
// sub-byte type fills whole bytes.
constexpr int64_t kElements = 264;

// Three tensors of each dtype.
refit::RefitInfo EveryDType() {
  std::vector<refit::TensorSpec> tensors;
  for (const refit::DType dtype : refit::kAllDTypes) {
    for (int i = 0; i < 3; ++i) {
      tensors.push_back({absl::StrCat(dtype, ".", i), {kElements}, dtype});
    }
  }
  return *refit::RefitInfo::Create(tensors);
}

Parameters Make(const refit::RefitInfo& info) {
  absl::StatusOr<Parameters> parameters = Parameters::Create(info);
  EXPECT_THAT(parameters, IsOk());
  return *std::move(parameters);
}

std::string Bytes(const Parameters& parameters, int tensor) {
  const refit::MutableTensorView& view = parameters.view(tensor);
  return std::string(reinterpret_cast<const char*>(view.data()),
                     static_cast<size_t>(view.num_bytes()));
}

// The bits of one element.
uint64_t Element(const std::string& bytes, int bits, int64_t index) {
  uint64_t value = 0;
  for (int b = 0; b < bits; ++b) {
    const size_t at = static_cast<size_t>(index * bits + b);
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at / 8]) >> (at % 8) & 1) << b;
  }
  return value;
}

// From each format's definition, not from the fill patterns.
bool IsFinite(refit::DType dtype, uint64_t bits) {
  const auto exponent_is_full = [bits](int shift, uint64_t full) {
    return ((bits >> shift) & full) == full;
  };
  switch (dtype) {
    case refit::DType::kF8E5M2:
      return !exponent_is_full(2, 0x1F);
    case refit::DType::kF8E4M3:
      return (bits & 0x7F) != 0x7F;
    case refit::DType::kF8E8M0:
      return bits != 0xFF;
    case refit::DType::kF8E4M3Fnuz:
    case refit::DType::kF8E5M2Fnuz:
      return bits != 0x80;
    case refit::DType::kF16:
      return !exponent_is_full(10, 0x1F);
    case refit::DType::kBF16:
      return !exponent_is_full(7, 0xFF);
    case refit::DType::kF32:
      return !exponent_is_full(23, 0xFF);
    case refit::DType::kC64:
      return !exponent_is_full(23, 0xFF) && !exponent_is_full(55, 0xFF);
    case refit::DType::kF64:
      return !exponent_is_full(52, 0x7FF);
    case refit::DType::kBool:
      return bits <= 1;
    default:
      return true;
  }
}

void ExpectFinite(const Parameters& parameters) {
  for (int t = 0; t < parameters.info().size(); ++t) {
    const refit::DType dtype = parameters.info()[t].dtype;
    const std::string bytes = Bytes(parameters, t);
    for (int64_t i = 0; i < kElements; ++i) {
      ASSERT_TRUE(IsFinite(dtype, Element(bytes, refit::DTypeBits(dtype), i)))
          << parameters.info()[t].name << " element " << i;
    }
  }
}

TEST(ParametersTest, SeededValuesAreFiniteAndNoTwoTensorsAreEqual) {
  Parameters parameters = Make(EveryDType());
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
    parameters.FillSeeded(seed);
    ExpectFinite(parameters);
    std::set<std::string> seen;
    for (int t = 0; t < parameters.info().size(); ++t) {
      EXPECT_TRUE(seen.insert(Bytes(parameters, t)).second) << parameters.info()[t].name;
    }
  }
}

TEST(ParametersTest, TheSeedDecidesTheValues) {
  Parameters a = Make(EveryDType()), b = Make(EveryDType()), c = Make(EveryDType());
  a.FillSeeded(7);
  b.FillSeeded(7);
  c.FillSeeded(8);
  for (int t = 0; t < a.info().size(); ++t) {
    EXPECT_EQ(Bytes(a, t), Bytes(b, t)) << a.info()[t].name;
    EXPECT_NE(Bytes(a, t), Bytes(c, t)) << a.info()[t].name;
  }
}

TEST(ParametersTest, AStepChangesEveryElementOfEveryTensor) {
  Parameters parameters = Make(EveryDType());
  parameters.FillSeeded(7);
  for (int64_t step = 1; step <= 5; ++step) {
    std::vector<std::string> before;
    for (int t = 0; t < parameters.info().size(); ++t) before.push_back(Bytes(parameters, t));
    parameters.Perturb(7, step);
    ExpectFinite(parameters);
    for (int t = 0; t < parameters.info().size(); ++t) {
      const int bits = refit::DTypeBits(parameters.info()[t].dtype);
      const std::string after = Bytes(parameters, t);
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_NE(Element(before[static_cast<size_t>(t)], bits, i), Element(after, bits, i))
            << parameters.info()[t].name << " element " << i << " step " << step;
      }
    }
  }
}

TEST(ParametersTest, StepsAreDeterministic) {
  Parameters a = Make(EveryDType()), b = Make(EveryDType());
  a.FillSeeded(7);
  b.FillSeeded(7);
  for (int64_t step = 1; step <= 3; ++step) {
    a.Perturb(7, step);
    b.Perturb(7, step);
  }
  for (int t = 0; t < a.info().size(); ++t) EXPECT_EQ(Bytes(a, t), Bytes(b, t));
}

TEST(ParametersTest, OddSizesAndEmptyTensorsStayInTheirPlaces) {
  const auto info = refit::RefitInfo::Create({{"a", {3}, refit::DType::kI8},
                                              {"none", {0, 7}, refit::DType::kF32},
                                              {"b", {5}, refit::DType::kBF16},
                                              {"scalar", {}, refit::DType::kF64}});
  ASSERT_THAT(info, IsOk());
  Parameters parameters = Make(*info);
  parameters.FillBytes(0xA5);
  parameters.FillSeeded(1);
  parameters.Perturb(1, 1);
  for (int t = 0; t + 1 < info->size(); ++t) {
    const std::byte* end = parameters.view(t).data() + parameters.view(t).num_bytes();
    const std::byte* const next = parameters.view(t + 1).data();
    EXPECT_TRUE(std::all_of(end, next, [](std::byte b) { return b == std::byte{0xA5}; }))
        << (*info)[t].name;
  }
}

TEST(ParametersTest, MoreThanTheMachineHasIsRefused) {
  const auto info = refit::RefitInfo::Create({{"huge", {int64_t{1} << 50}, refit::DType::kU8}});
  ASSERT_THAT(info, IsOk());
  EXPECT_THAT(Parameters::Create(*info),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1125899906842624")));
}

TEST(ParametersTest, AsHfNamesEveryTensorAndItsMemory) {
  Parameters parameters = Make(EveryDType());
  const std::vector<refit::HfParameter> hf = parameters.AsHf();
  ASSERT_EQ(static_cast<int>(hf.size()), parameters.info().size());
  for (int t = 0; t < parameters.info().size(); ++t) {
    EXPECT_EQ(hf[static_cast<size_t>(t)].name, parameters.info()[t].name);
    EXPECT_EQ(hf[static_cast<size_t>(t)].view.data(), parameters.view(t).data());
  }
}

}  // namespace
}  // namespace weight_sync::fakes
