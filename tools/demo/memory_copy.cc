// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/memory_copy.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>

namespace weight_sync::demo {

double MeasureMemoryCopy(int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr int kAtLeastRuns = 5;
  constexpr std::chrono::milliseconds kAtLeast(250);  // longer than a neighbour's short burst
  const size_t size = static_cast<size_t>(bytes);
  const std::unique_ptr<std::byte[]> from(new std::byte[size]), to(new std::byte[size]);
  std::memset(from.get(), 1, size);
  std::memset(to.get(), 0, size);  // touched: no page is made while we measure
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int run = 0; run < kAtLeastRuns || Clock::now() - begin < kAtLeast; ++run) {
    const Clock::time_point start = Clock::now();
    std::memcpy(to.get(), from.get(), size);
    asm volatile("" : : "r"(to.get()) : "memory");  // somebody might read it
    const std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / took.count());
  }
  return best;
}

}  // namespace weight_sync::demo
