// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_dtype.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::refit {
namespace {

using Code = dlpack::DLDataTypeCode;

struct Pair {
  DType dtype;
  Code code;  // with DTypeBits(dtype) bits
};

constexpr Pair kPairs[] = {
    {DType::kBool, Code::kBool},
    {DType::kF4, Code::kFloat4E2M1Fn},
    {DType::kF6E2M3, Code::kFloat6E2M3Fn},
    {DType::kF6E3M2, Code::kFloat6E3M2Fn},
    {DType::kU8, Code::kUInt},
    {DType::kI8, Code::kInt},
    {DType::kF8E5M2, Code::kFloat8E5M2},
    {DType::kF8E4M3, Code::kFloat8E4M3Fn},
    {DType::kF8E8M0, Code::kFloat8E8M0Fnu},
    {DType::kF8E4M3Fnuz, Code::kFloat8E4M3Fnuz},
    {DType::kF8E5M2Fnuz, Code::kFloat8E5M2Fnuz},
    {DType::kI16, Code::kInt},
    {DType::kU16, Code::kUInt},
    {DType::kF16, Code::kFloat},
    {DType::kBF16, Code::kBfloat},
    {DType::kI32, Code::kInt},
    {DType::kU32, Code::kUInt},
    {DType::kF32, Code::kFloat},
    {DType::kF64, Code::kFloat},
    {DType::kI64, Code::kInt},
    {DType::kU64, Code::kUInt},
};

std::string CodeName(Code code) {
  switch (code) {
#define WS_DLPACK_CASE_(name, dlpack_name, value) \
  case Code::name:                                \
    return #dlpack_name;
    WS_DLPACK_TYPE_CODES(WS_DLPACK_CASE_)
#undef WS_DLPACK_CASE_
  }
  return absl::StrCat("type code ", static_cast<int>(code));
}

}  // namespace

absl::StatusOr<DType> DTypeFromDlpack(const dlpack::DLDataType& type) {
  for (const Pair& pair : kPairs) {
    if (type.code == pair.code && type.bits == DTypeBits(pair.dtype) && type.lanes == 1) {
      return pair.dtype;
    }
  }
  return absl::UnimplementedError(
      absl::StrCat("elements of the DLPack type ", ToString(type), " are not supported"));
}

absl::StatusOr<dlpack::DLDataType> DTypeToDlpack(DType dtype) {
  for (const Pair& pair : kPairs) {
    if (dtype == pair.dtype) {
      return dlpack::DLDataType{pair.code, static_cast<uint8_t>(DTypeBits(dtype)), 1};
    }
  }
  return absl::UnimplementedError(
      absl::StrCat("elements of ", SafetensorsName(dtype), " are not handed out by DLPack"));
}

std::string ToString(const dlpack::DLDataType& type) {
  std::string text = absl::StrCat(CodeName(type.code), ", ", type.bits, " bits");
  if (type.lanes != 1) absl::StrAppend(&text, ", ", type.lanes, " lanes");
  return text;
}

}  // namespace weight_sync::refit
