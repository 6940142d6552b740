// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the C ABI says of arrays, as C++ says it. Pure functions; InvalidArgument says what is
// wrong, without the array's name.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_ARRAYS_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_ARRAYS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/sharding/sharding.h"
#include "refit/tensor/tensor_view.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync::c_api {

// What is declared, without a name.
absl::StatusOr<refit::ArraySpec> ReadSpec(const char* dtype, int32_t rank, const int64_t* shape,
                                          const int64_t* strides);

// An array in memory. Its data must be aligned to its elements.
absl::StatusOr<refit::MutableTensorView> ViewMemory(void* data, int64_t byte_offset,
                                                    const refit::ArraySpec& spec);

absl::StatusOr<refit::Sharding> ReadSharding(const ws_sharding* given, const refit::Shape& shape);

}  // namespace weight_sync::c_api

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_C_API_ARRAYS_H_
