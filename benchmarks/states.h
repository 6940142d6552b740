// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The state dicts that the benchmarks sync, all bfloat16. bfloat16 is what trainers send; the
// transport moves bytes, so other types differ only in their sizes.
//
//   refit::RefitInfo dense = Qwen3Dense(28, 151936);     // Qwen3-0.6B: 310 tensors, 1.19 GB

#ifndef WEIGHT_SYNC_BENCHMARKS_STATES_H_
#define WEIGHT_SYNC_BENCHMARKS_STATES_H_

#include <cstdint>

#include "refit/refit_info.h"

namespace weight_sync::benchmarks {

// The names and shapes of Qwen3-0.6B, tied, with this many layers and tokens.
refit::RefitInfo Qwen3Dense(int layers, int64_t vocabulary);

// Expert matrices of 48 KiB, three an expert: many small tensors.
refit::RefitInfo SmallExperts(int layers, int experts);

// `count` vectors of `bytes` each; `bytes` is even.
refit::RefitInfo Vectors(int count, int64_t bytes);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_STATES_H_
