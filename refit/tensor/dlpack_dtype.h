// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DLPack's element types as DTypes, and back.
//
// Every DType has one, except C64, which is refused: no parameter is complex. Of DLPack's types,
// opaque handles, vectors, integers of 128 bits, complex numbers and the float8 variants e3m4, e4m3
// and e4m3b11fnuz have no DType. Pure functions.
//
//   WS_ASSIGN_OR_RETURN(DType dtype, DTypeFromDlpack(tensor.dtype));      // {kBfloat, 16, 1}: BF16

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DLPACK_DTYPE_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DLPACK_DTYPE_H_

#include <string>

#include "absl/status/statusor.h"
#include "refit/tensor/dlpack_abi.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

// Unimplemented for a type that has no DType.
absl::StatusOr<DType> DTypeFromDlpack(const dlpack::DLDataType& type);
absl::StatusOr<dlpack::DLDataType> DTypeToDlpack(DType dtype);

// "kDLBfloat, 16 bits"; lanes where there are several.
std::string ToString(const dlpack::DLDataType& type);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DLPACK_DTYPE_H_
