// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One scope over a piece of work, also over several threads: a deadline, and a cancellation whose
// first cause is what everybody sees. Every wait takes a scope, so every wait ends. A fast wait
// asks Check() (a load and a clock reading); a wait in poll(2) adds fd(), readable once cancelled,
// and polls for at most deadline().remaining_ms().
// A narrower scope lies in another: it ends with it, or sooner at a deadline of its own.
// All methods are thread-safe. A scope is cancelled at most once and never reset.
//
//   base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
//   std::thread engine_side([&] {
//     if (auto s = generation.Begin(scope); !s.ok()) scope.Cancel(s);
//   });
//   while (!slot_free()) {
//     WS_RETURN_IF_ERROR(scope.Check("waiting for a slot"));  // the engine side's error, if any
//   }

#ifndef WEIGHT_SYNC_BASE_CANCEL_SCOPE_H_
#define WEIGHT_SYNC_BASE_CANCEL_SCOPE_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace weight_sync::base {

class CancelScope {
 public:
  explicit CancelScope(const Deadline& deadline);
  // Within `outer`, which must outlive it; it is cancelled by cancelling that one.
  CancelScope(const CancelScope& outer, absl::Duration timeout);
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // `cause` must not be OK. Later calls are ignored: the first failure is the cause. Not for a
  // narrower scope.
  void Cancel(absl::Status cause);

  bool cancelled() const {
    return outer_ != nullptr ? outer_->cancelled() : cancelled_.load(std::memory_order_acquire);
  }
  const Deadline& deadline() const { return deadline_; }

  // OK while not cancelled, then the first cause.
  absl::Status status() const;

  // The cause if cancelled, DeadlineExceeded if the deadline has passed, else OK.
  absl::Status Check(absl::string_view what) const;

  // Readable (POLLIN) from the moment the scope is cancelled. Owned by the scope.
  int fd() const { return outer_ != nullptr ? outer_->fd() : event_.get(); }

 private:
  const CancelScope* const outer_ = nullptr;
  const Deadline deadline_;
  std::atomic<bool> cancelled_{false};
  mutable absl::Mutex mutex_;
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
  UniqueFd event_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_CANCEL_SCOPE_H_
