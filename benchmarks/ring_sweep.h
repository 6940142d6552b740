// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the transport with rings of many shapes, for the defaults in weight_sync/options.h.

#ifndef WEIGHT_SYNC_BENCHMARKS_RING_SWEEP_H_
#define WEIGHT_SYNC_BENCHMARKS_RING_SWEEP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "refit/refit_info.h"

namespace weight_sync::benchmarks {

struct RingSweep {
  std::vector<std::pair<std::string, refit::RefitInfo>> states;
  std::vector<int32_t> slots;
  std::vector<int64_t> slot_bytes;
  int repetitions;
  int engine_core;
};

RingSweep FullSweep(int repetitions);
// Every code path, on any machine, in a moment.
RingSweep SmokeSweep();

// Prints GB/s, best and median of interleaved repetitions, for every pair of slots and slot_bytes.
absl::Status Run(const RingSweep& sweep);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_RING_SWEEP_H_
