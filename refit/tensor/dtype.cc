// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dtype.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit {
namespace {

struct DTypeInfo {
  DType dtype;
  int bits;
  absl::string_view safetensors;
  absl::string_view torch;
  absl::string_view numpy;
};

constexpr DTypeInfo kInfos[] = {
    {DType::kBool, 8, "BOOL", "torch.bool", "bool"},
    {DType::kF4, 4, "F4", "torch.float4_e2m1fn_x2", "float4_e2m1fn"},
    {DType::kF6E2M3, 6, "F6_E2M3", "", "float6_e2m3fn"},
    {DType::kF6E3M2, 6, "F6_E3M2", "", "float6_e3m2fn"},
    {DType::kU8, 8, "U8", "torch.uint8", "uint8"},
    {DType::kI8, 8, "I8", "torch.int8", "int8"},
    {DType::kF8E5M2, 8, "F8_E5M2", "torch.float8_e5m2", "float8_e5m2"},
    {DType::kF8E4M3, 8, "F8_E4M3", "torch.float8_e4m3fn", "float8_e4m3fn"},
    {DType::kF8E8M0, 8, "F8_E8M0", "torch.float8_e8m0fnu", "float8_e8m0fnu"},
    {DType::kF8E4M3Fnuz, 8, "F8_E4M3FNUZ", "torch.float8_e4m3fnuz", "float8_e4m3fnuz"},
    {DType::kF8E5M2Fnuz, 8, "F8_E5M2FNUZ", "torch.float8_e5m2fnuz", "float8_e5m2fnuz"},
    {DType::kI16, 16, "I16", "torch.int16", "int16"},
    {DType::kU16, 16, "U16", "torch.uint16", "uint16"},
    {DType::kF16, 16, "F16", "torch.float16", "float16"},
    {DType::kBF16, 16, "BF16", "torch.bfloat16", "bfloat16"},
    {DType::kI32, 32, "I32", "torch.int32", "int32"},
    {DType::kU32, 32, "U32", "torch.uint32", "uint32"},
    {DType::kF32, 32, "F32", "torch.float32", "float32"},
    {DType::kC64, 64, "C64", "torch.complex64", "complex64"},
    {DType::kF64, 64, "F64", "torch.float64", "float64"},
    {DType::kI64, 64, "I64", "torch.int64", "int64"},
    {DType::kU64, 64, "U64", "torch.uint64", "uint64"},
};

constexpr bool IndexedByDType() {
  if (std::size(kInfos) != kAllDTypes.size()) return false;
  for (size_t i = 0; i < kAllDTypes.size(); ++i) {
    if (kInfos[i].dtype != kAllDTypes[i] || static_cast<size_t>(kAllDTypes[i]) != i) return false;
  }
  return true;
}
static_assert(IndexedByDType(), "kInfos and kAllDTypes follow the order of DType");

const DTypeInfo& Info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

}  // namespace

int DTypeBits(DType dtype) { return Info(dtype).bits; }
absl::string_view SafetensorsName(DType dtype) { return Info(dtype).safetensors; }
absl::string_view TorchName(DType dtype) { return Info(dtype).torch; }
absl::string_view NumpyName(DType dtype) { return Info(dtype).numpy; }

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (name.empty()) break;  // not a name, although torch's is empty for a type that it lacks
    if (name == info.safetensors || name == info.torch || name == info.numpy) return info.dtype;
  }
  const std::string known =
      absl::StrJoin(kInfos, ", ", [](std::string* out, const DTypeInfo& info) {
        absl::StrAppend(out, info.safetensors, " (", info.torch, info.torch.empty() ? "" : ", ",
                        info.numpy, ")");
      });
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", name, "'; known: ", known));
}

absl::StatusOr<DType> ParseSafetensorsDType(absl::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (name == info.safetensors) return info.dtype;
  }
  const std::string known = absl::StrJoin(
      kInfos, ", ",
      [](std::string* out, const DTypeInfo& info) { absl::StrAppend(out, info.safetensors); });
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", name, "'; known: ", known));
}

}  // namespace weight_sync::refit
