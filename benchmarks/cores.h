// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Pinning, so that the two ends of a transfer neither share a core nor wander.

#ifndef WEIGHT_SYNC_BENCHMARKS_CORES_H_
#define WEIGHT_SYNC_BENCHMARKS_CORES_H_

#include "absl/status/status.h"

namespace weight_sync::benchmarks {

inline constexpr int kTrainerCore = 0;
inline constexpr int kEngineCore = 1;
inline constexpr int kAnyCore = -1;

// This thread and those that it starts from now on; kAnyCore changes nothing.
absl::Status PinThisThread(int core);

// The same to all other cores that it may use; nothing changes where there is none.
absl::Status KeepThisThreadOff(int core);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_CORES_H_
