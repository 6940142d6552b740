// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/cancel_scope.h"

#include <sys/eventfd.h>

#include <utility>

#include "absl/log/check.h"

namespace weight_sync::base {

CancelScope::CancelScope(const Deadline& deadline)
    : deadline_(deadline), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PCHECK(event_.valid()) << "eventfd";
}

CancelScope::CancelScope(const CancelScope& outer, absl::Duration timeout)
    : outer_(&outer), deadline_(Deadline::Earlier(outer.deadline_, Deadline::After(timeout))) {}

void CancelScope::Cancel(absl::Status cause) {
  CHECK(outer_ == nullptr) << "a narrower scope is cancelled with its outer one";
  CHECK(!cause.ok()) << "a scope is cancelled with an error";
  absl::MutexLock lock(&mutex_);  // to the end: whoever loses the race returns to a cancelled scope
  if (!cause_.ok()) return;
  cause_ = std::move(cause);
  cancelled_.store(true, std::memory_order_release);
  PCHECK(::eventfd_write(event_.get(), 1) == 0);
}

absl::Status CancelScope::status() const {
  if (outer_ != nullptr) return outer_->status();
  absl::MutexLock lock(&mutex_);
  return cause_;
}

absl::Status CancelScope::Check(absl::string_view what) const {
  if (cancelled()) return status();
  if (deadline_.expired()) return deadline_.Exceeded(what);
  return absl::OkStatus();
}

}  // namespace weight_sync::base
