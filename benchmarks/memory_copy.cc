// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/memory_copy.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/status_macros.h"
#include "benchmarks/cores.h"
#include "benchmarks/states.h"
#include "benchmarks/stopwatch.h"

namespace weight_sync::benchmarks {

absl::StatusOr<MemoryCopy> MemoryCopy::Create(int64_t bytes) {
  const refit::RefitInfo info = Vectors(1, bytes);
  WS_ASSIGN_OR_RETURN(fakes::Parameters from, fakes::Parameters::Create(info));
  WS_ASSIGN_OR_RETURN(fakes::Parameters to, fakes::Parameters::Create(info));
  from.FillSeeded(1);
  return MemoryCopy(std::move(from), std::move(to));
}

double MemoryCopy::OneThread() {
  const Stopwatch watch;
  std::memcpy(to_.view(0).data(), from_.view(0).data(), static_cast<size_t>(bytes()));
  return watch.seconds();
}

double MemoryCopy::TwoThreads(int second_core) {
  const size_t half = static_cast<size_t>(bytes()) / 2;
  const size_t rest = static_cast<size_t>(bytes()) - half;
  // The second thread is on its core before the watch starts.
  absl::Notification ready;
  std::atomic<bool> go{false};
  std::thread second([&] {
    PinThisThread(second_core).IgnoreError();  // unpinned it is slower at worst
    ready.Notify();
    while (!go.load(std::memory_order_acquire)) {
    }
    std::memcpy(to_.view(0).data() + half, from_.view(0).data() + half, rest);
  });
  ready.WaitForNotification();
  const Stopwatch watch;
  go.store(true, std::memory_order_release);
  std::memcpy(to_.view(0).data(), from_.view(0).data(), half);
  second.join();
  return watch.seconds();
}

bool MemoryCopy::equal() const {
  return std::memcmp(to_.view(0).data(), from_.view(0).data(), static_cast<size_t>(bytes())) == 0;
}

}  // namespace weight_sync::benchmarks
