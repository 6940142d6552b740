// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_
#define WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_

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

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_STOPWATCH_H_
