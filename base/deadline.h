// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A point on the monotonic clock by which a wait must have ended. Every wait of this library takes
// one; there is no infinite deadline on purpose. A value type; copies are independent.
//
//   base::Deadline deadline = base::Deadline::After(absl::Seconds(30));
//   while (!ready()) {
//     if (deadline.expired()) return deadline.Exceeded("waiting for the engine's hello");
//     WaitAtMost(deadline.remaining());
//   }

#ifndef WEIGHT_SYNC_BASE_DEADLINE_H_
#define WEIGHT_SYNC_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace weight_sync::base {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Durations below zero expire at once; those above a year are cut to a year.
  static Deadline After(absl::Duration timeout) {
    timeout = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
    return Deadline(Clock::now() + absl::ToChronoNanoseconds(timeout), timeout);
  }

  // The earlier of the two.
  static Deadline Earlier(const Deadline& a, const Deadline& b) { return a.at_ < b.at_ ? a : b; }

  bool expired() const { return Clock::now() >= at_; }

  // Never negative.
  absl::Duration remaining() const {
    return std::max(absl::ZeroDuration(), absl::FromChrono(at_ - Clock::now()));
  }

  // For poll(2) and zmq_poll: rounded up, so that a wait never spins on the last millisecond.
  int remaining_ms() const {
    const absl::Duration left = remaining();
    return static_cast<int>(std::min<int64_t>(
        absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))), 1 << 30));
  }

  // The error of a wait that reached this deadline; `what` says what was waited for.
  absl::Status Exceeded(absl::string_view what) const {
    return absl::DeadlineExceededError(
        absl::StrCat(what, ": no end within ", absl::FormatDuration(timeout_)));
  }

 private:
  Deadline(Clock::time_point at, absl::Duration timeout) : at_(at), timeout_(timeout) {}

  Clock::time_point at_;
  absl::Duration timeout_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_DEADLINE_H_
