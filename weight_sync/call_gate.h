// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CallGate: which of a synchronizer's calls may run. InitCommunicator once, then SyncWeights, one at
// a time; nothing after Shutdown, which cancels the one that runs. Thread-safe.
//
//   base::CancelScope scope(deadline);
//   WS_RETURN_IF_ERROR(gate.Enter(CallGate::State::kReady, "SyncWeights", &scope));
//   ...
//   gate.Leave(CallGate::State::kReady);

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_CALL_GATE_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_CALL_GATE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/cancel_scope.h"

namespace weight_sync {

class CallGate {
 public:
  enum class State : uint8_t { kNew, kReady, kShutDown };

  // FailedPrecondition unless the state is `needed` and no other call runs. `scope` is what ShutDown()
  // cancels until Leave().
  absl::Status Enter(State needed, absl::string_view what, base::CancelScope* scope);
  void Leave(State next);

  // Returns when no call runs, and none will.
  void ShutDown();

 private:
  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  base::CancelScope* active_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_CALL_GATE_H_
