// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DType: the element types of tensors, and how other programs spell them.
//
// The set is that of the safetensors format (the `Dtype` enum of its reference implementation,
// https://github.com/huggingface/safetensors). Every type is described by three names:
//
//   safetensors  "BF16"            in checkpoints' headers
//   torch        "torch.bfloat16"  what str(tensor.dtype) prints
//   numpy        "bfloat16"        or the ml_dtypes package's name where numpy has none
//
// Example:
//
//   absl::StatusOr<DType> dtype = ParseDType("torch.bfloat16");   // or "BF16", or "bfloat16"
//   if (!dtype.ok()) return dtype.status();
//   CHECK_EQ(DTypeBits(*dtype), 16);
//   CHECK_EQ(SafetensorsName(*dtype), "BF16");
//
// Thread-safety: everything here is a pure function.

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DTYPE_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DTYPE_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

// In the order of the safetensors format, which is by alignment: a safetensors writer lays tensors
// out by descending DType. The values are not stable across releases; put names on a wire.
enum class DType : uint8_t {
  kBool,
  kF4,      // e2m1, two elements a byte
  kF6E2M3,  // four elements in three bytes
  kF6E3M2,  // four elements in three bytes
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,  // torch's and ml_dtypes' float8_e4m3fn
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,  // two F32
  kF64,
  kI64,
  kU64,
};

// Every DType, in order.
inline constexpr std::array<DType, 22> kAllDTypes = {
    DType::kBool,       DType::kF4,     DType::kF6E2M3, DType::kF6E3M2, DType::kU8,
    DType::kI8,         DType::kF8E5M2, DType::kF8E4M3, DType::kF8E8M0, DType::kF8E4M3Fnuz,
    DType::kF8E5M2Fnuz, DType::kI16,    DType::kU16,    DType::kF16,    DType::kBF16,
    DType::kI32,        DType::kU32,    DType::kF32,    DType::kC64,    DType::kF64,
    DType::kI64,        DType::kU64,
};

// Bits of one element: 4, 6, 8, 16, 32 or 64.
int DTypeBits(DType dtype);

// True for the types of which several elements share a byte (F4, F6_E2M3, F6_E3M2).
inline bool IsSubByte(DType dtype) { return DTypeBits(dtype) % 8 != 0; }

// "BF16".
absl::string_view SafetensorsName(DType dtype);

// "torch.bfloat16"; empty where torch has no such type (the two F6 types). torch.float4_e2m1fn_x2
// counts *pairs* of F4 elements: its last dimension is half of the safetensors shape's.
absl::string_view TorchName(DType dtype);

// "bfloat16": numpy's name, or the ml_dtypes package's where numpy has none.
absl::string_view NumpyName(DType dtype);

// The type with this safetensors, torch or numpy name (exact, case-sensitive). InvalidArgument
// names the unknown text and lists what is known.
absl::StatusOr<DType> ParseDType(absl::string_view name);

// The type with this safetensors name and no other spelling: what a checkpoint's header may hold.
absl::StatusOr<DType> ParseSafetensorsDType(absl::string_view name);

// Lets absl::StrCat, absl::StrFormat("%v") and CHECK_EQ print a DType by its safetensors name.
template <typename Sink>
void AbslStringify(Sink& sink, DType dtype) {
  sink.Append(SafetensorsName(dtype));
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DTYPE_H_
