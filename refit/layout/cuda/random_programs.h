// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Programs of all kinds of copies, for tests that compare who runs them.
//
//   RandomProgram random = MakeRandomProgram(rng);
//   random.program.Run(0, random.bases(), bucket);

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_CUDA_RANDOM_PROGRAMS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_CUDA_RANDOM_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "refit/layout/copy_program.h"

namespace weight_sync::refit::cuda {

struct RandomProgram {
  CopyProgram program;
  std::vector<std::vector<std::byte>> arrays;
  std::vector<int64_t> first;         // of each array's elements in it, where a program counts from
  std::vector<int64_t> bucket_bytes;  // of each bucket

  std::vector<const std::byte*> bases() const;
};

// Transposes around the tiles' sizes, runs, conversions, and strides of any sign and order; places
// that are as aligned as elements are, or by one byte not.
RandomProgram MakeRandomProgram(std::mt19937& rng);

}  // namespace weight_sync::refit::cuda

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_CUDA_RANDOM_PROGRAMS_H_
