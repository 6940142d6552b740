// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What SquareAndAdd of add.cu is launched with: a header that host and device code share.

#ifndef WEIGHT_SYNC_THIRD_PARTY_CUDA_SMOKE_TESTS_ADD_ARGUMENTS_H_
#define WEIGHT_SYNC_THIRD_PARTY_CUDA_SMOKE_TESTS_ADD_ARGUMENTS_H_

#include <cstdint>

namespace weight_sync::cuda_smoke {

struct AddArguments {
  std::uint32_t* values;  // in device memory
  std::uint64_t count;
  std::uint32_t addend;
};

}  // namespace weight_sync::cuda_smoke

#endif  // WEIGHT_SYNC_THIRD_PARTY_CUDA_SMOKE_TESTS_ADD_ARGUMENTS_H_
