// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_
#define WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_

#include <time.h>

#include <chrono>

namespace weight_sync::benchmarks {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Of the processor's time that this process takes, its own and the system's for it.
class CpuStopwatch {
 public:
  double seconds() const { return Now() - start_; }

 private:
  static double Now() {
    timespec now;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  const double start_ = Now();
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_
