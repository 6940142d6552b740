// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Durations for a SyncReport, by a clock that only goes forward.
//
//   const SyncClock::time_point start = SyncClock::now();
//   report.seconds = SecondsSince(start);

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_SECONDS_SINCE_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_SECONDS_SINCE_H_

#include <chrono>

namespace weight_sync {

using SyncClock = std::chrono::steady_clock;

inline double SecondsSince(SyncClock::time_point start) {
  return std::chrono::duration<double>(SyncClock::now() - start).count();
}

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_SECONDS_SINCE_H_
