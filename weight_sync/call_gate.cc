// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/call_gate.h"

#include "absl/strings/str_cat.h"

namespace weight_sync {

absl::Status CallGate::Enter(State needed, absl::string_view what, base::CancelScope* scope) {
  absl::MutexLock lock(&mutex_);
  if (state_ == State::kShutDown) {
    return absl::FailedPreconditionError(absl::StrCat(what, " after Shutdown"));
  }
  if (active_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(what, " while another call runs"));
  }
  if (state_ != needed) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, needed == State::kNew ? " was called before" : " before InitCommunicator"));
  }
  active_ = scope;
  return absl::OkStatus();
}

void CallGate::Leave(State next) {
  absl::MutexLock lock(&mutex_);
  active_ = nullptr;
  if (state_ != State::kShutDown) state_ = next;
}

void CallGate::ShutDown() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return active_ == nullptr; };
  absl::MutexLock lock(&mutex_);
  state_ = State::kShutDown;
  if (active_ != nullptr) active_->Cancel(absl::AbortedError("the synchronizer was shut down"));
  // Bounded by the deadlines of the call that runs.
  mutex_.Await(absl::Condition(&idle));
}

}  // namespace weight_sync
