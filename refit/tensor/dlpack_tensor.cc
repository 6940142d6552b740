// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "refit/tensor/dlpack_dtype.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

using dlpack::DLDeviceType;
using dlpack::DLTensor;

std::string DeviceName(DLDeviceType type) {
  switch (type) {
#define WS_DLPACK_CASE_(name, dlpack_name, value) \
  case DLDeviceType::name:                        \
    return #dlpack_name;
    WS_DLPACK_DEVICE_TYPES(WS_DLPACK_CASE_)
#undef WS_DLPACK_CASE_
  }
  return absl::StrCat("device type ", static_cast<int32_t>(type));
}

// torch's pairs of F4 elements.
bool IsPairOfF4(const dlpack::DLDataType& type) {
  return type.code == dlpack::DLDataTypeCode::kFloat4E2M1Fn && type.bits == 4 && type.lanes == 2;
}

// Strides of pairs as strides of their elements, of which those of a pair follow one another.
absl::Status StridesOfElements(const DLTensor& pairs, absl::Span<int64_t> strides) {
  const size_t last = strides.size() - 1;
  for (size_t d = 0; d < last; ++d) {
    if (__builtin_mul_overflow(strides[d], 2, &strides[d])) {
      return absl::InvalidArgumentError(absl::StrCat("its stride ", strides[d], " overflows"));
    }
  }
  if (pairs.shape[last] == 1) strides[last] = 1;
  return absl::OkStatus();
}

absl::StatusOr<TensorView> ViewOf(const DLTensor& tensor, uint64_t flags) {
  if (tensor.device.device_type != DLDeviceType::kCpu &&
      tensor.device.device_type != DLDeviceType::kCudaHost) {
    return absl::UnimplementedError(absl::StrCat(
        "it is in the memory of ", DeviceName(tensor.device.device_type), " ",
        tensor.device.device_id, "; only host memory can be read: copy it to the host first"));
  }
  const bool pairs = IsPairOfF4(tensor.dtype);
  absl::StatusOr<DType> dtype = DType::kF4;
  if (!pairs) dtype = DTypeFromDlpack(tensor.dtype);
  if (!dtype.ok()) return dtype.status();
  if (IsSubByte(*dtype) && (flags & dlpack::kIsSubbyteTypePadded) != 0) {
    return absl::UnimplementedError(
        absl::StrCat("elements of ", SafetensorsName(*dtype), " in a byte each are not supported"));
  }

  if (tensor.ndim < 0 || tensor.ndim > Shape::kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", tensor.ndim, " dimensions; 0 to ",
                                                   Shape::kMaxRank, " are supported"));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return absl::InvalidArgumentError("its shape is a null pointer");
  }
  std::array<int64_t, Shape::kMaxRank> dims = {};
  const size_t rank = static_cast<size_t>(tensor.ndim);
  std::copy_n(tensor.shape, rank, dims.begin());
  if (pairs) {
    if (rank == 0) return absl::InvalidArgumentError("a pair of F4 elements has no dimension");
    if (__builtin_mul_overflow(dims[rank - 1], 2, &dims[rank - 1])) {
      return absl::InvalidArgumentError("its size overflows");
    }
  }
  WS_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(absl::MakeConstSpan(dims.data(), rank)));
  WS_RETURN_IF_ERROR(ByteSize(*dtype, shape).status());

  std::byte* data = static_cast<std::byte*>(tensor.data);
  if (shape.num_elements() == 0) {
    data = nullptr;  // whatever is there
  } else {
    if (data == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", shape.num_elements(), " elements and a null pointer for data"));
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(data);
    if (tensor.byte_offset > std::numeric_limits<uintptr_t>::max() - address) {
      return absl::InvalidArgumentError(
          absl::StrCat("its byte offset ", tensor.byte_offset, " overflows"));
    }
    data += tensor.byte_offset;
    const uintptr_t alignment = static_cast<uintptr_t>(StorageElementBytes(*dtype));
    if ((address + tensor.byte_offset) % alignment != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "its data at %p is not aligned to its elements of %d bytes: copy it", data, alignment));
    }
  }
  if (tensor.strides == nullptr) return TensorView::Contiguous(data, *dtype, shape);
  std::array<int64_t, Shape::kMaxRank> strides = {};
  std::copy_n(tensor.strides, rank, strides.begin());
  const absl::Span<int64_t> used = absl::MakeSpan(strides.data(), rank);
  if (pairs) WS_RETURN_IF_ERROR(StridesOfElements(tensor, used));
  return TensorView::Strided(data, *dtype, shape, used);
}

absl::Status Named(absl::string_view name, const absl::Status& status) {
  return base::Prefixed(absl::StrCat("DLPack tensor '", name, "'"), status);
}

absl::Status NullTensor(absl::string_view name) {
  return Named(name, absl::InvalidArgumentError("it is a null pointer"));
}

}  // namespace

void DlpackTensor::Return::operator()(dlpack::DLManagedTensorVersioned* managed) const {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

void DlpackTensor::Return::operator()(dlpack::DLManagedTensor* managed) const {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

absl::StatusOr<DlpackTensor> DlpackTensor::Import(absl::string_view name,
                                                  dlpack::DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return NullTensor(name);
  Loan<dlpack::DLManagedTensorVersioned> loan(managed);
  if (managed->version.major != dlpack::kMajorVersion) {
    return Named(name, absl::UnimplementedError(absl::StrCat(
                           "it is of DLPack ", managed->version.major, ".", managed->version.minor,
                           "; ", dlpack::kMajorVersion, ".x is understood")));
  }
  const auto view = ViewOf(managed->dl_tensor, managed->flags);
  if (!view.ok()) return Named(name, view.status());
  return DlpackTensor(*view, (managed->flags & dlpack::kReadOnly) != 0, std::move(loan));
}

absl::StatusOr<DlpackTensor> DlpackTensor::Import(absl::string_view name,
                                                  dlpack::DLManagedTensor* managed) {
  if (managed == nullptr) return NullTensor(name);
  Loan<dlpack::DLManagedTensor> loan(managed);
  const auto view = ViewOf(managed->dl_tensor, /*flags=*/0);
  if (!view.ok()) return Named(name, view.status());
  return DlpackTensor(*view, std::move(loan));
}

}  // namespace weight_sync::refit
