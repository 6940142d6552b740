// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>

#include "third_party/cuda/smoke_tests/add_arguments.h"

using weight_sync::cuda_smoke::AddArguments;

// values[i] = values[i] * values[i] + i + addend: what no copy, no zeroed memory and no kernel that ran
// twice would leave there.
extern "C" __global__ void SquareAndAdd(AddArguments arguments) {
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  const std::uint32_t value = arguments.values[i];
  arguments.values[i] = value * value + static_cast<std::uint32_t>(i) + arguments.addend;
}
