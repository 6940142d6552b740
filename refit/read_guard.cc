// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/read_guard.h"

#include <memory>

#include "absl/time/time.h"

namespace weight_sync::refit {

class StepGate::GateReading : public ReadGuard::Reading {
 public:
  GateReading(const StepGate* gate, uint64_t seen) : gate_(gate), seen_(seen) {}
  ~GateReading() override {
    absl::MutexLock lock(&gate_->mutex_);
    --gate_->readers_;
  }

  absl::Status Unchanged() override {
    absl::MutexLock lock(&gate_->mutex_);
    if (gate_->begun_ == seen_) return absl::OkStatus();
    return absl::AbortedError(
        "an optimizer step overlapped the sync, so its bytes are of two "
        "versions");
  }

 private:
  const StepGate* const gate_;
  const uint64_t seen_;
};

void StepGate::Open() {
  ++open_;
  ++begun_;
}

absl::StatusOr<ReadGuard> StepGate::Read() const {
  absl::MutexLock lock(&mutex_);
  if (open_ != 0) {
    return absl::AbortedError("an optimizer step is writing the parameters; sync between steps");
  }
  ++readers_;
  return ReadGuard(std::make_unique<GateReading>(this, begun_));
}

StepGate::Step::Step(StepGate& gate) : gate_(&gate) {
  absl::MutexLock lock(&gate.mutex_);
  gate.Open();
}

absl::StatusOr<StepGate::Step> StepGate::Step::AfterSyncs(StepGate& gate,
                                                          const base::Deadline& deadline) {
  const auto not_read = [&gate]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate.mutex_) {
    return gate.readers_ == 0;
  };
  absl::MutexLock lock(&gate.mutex_);
  if (!gate.mutex_.AwaitWithTimeout(absl::Condition(&not_read), deadline.remaining())) {
    return deadline.Exceeded("an optimizer step waiting for the sync that reads the parameters");
  }
  gate.Open();
  return Step(&gate, IsOpen());
}

StepGate::Step::~Step() {
  if (gate_ == nullptr) return;
  absl::MutexLock lock(&gate_->mutex_);
  --gate_->open_;
}

}  // namespace weight_sync::refit
