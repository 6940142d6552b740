// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepGate and ReadGuard: an optimizer step that overlaps a sync must make that sync fail. Bytes
// from two steps agree with their own digest and are still wrong, so only the source can tell.
//
// The trainer holds a StepGate beside its parameters and opens a StepGate::Step around everything
// that writes them. A sync takes a ReadGuard first and asks Unchanged() before it publishes: false
// if any step began in between. Nobody waits: the step goes on, the sync fails, and the next one
// carries the new weights. All methods are thread-safe; a guard must not outlive its gate.
//
//   StepGate gate;
//   { StepGate::Step step(gate); optimizer.step(); }              // trainer
//   WS_ASSIGN_OR_RETURN(ReadGuard guard, gate.Read());            // sync: begin
//   if (!guard.Unchanged()) return absl::AbortedError("...");     // sync: before publishing

#ifndef WEIGHT_SYNC_REFIT_READ_GUARD_H_
#define WEIGHT_SYNC_REFIT_READ_GUARD_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weight_sync::refit {

class StepGate;

class ReadGuard {
 public:
  bool Unchanged() const;

 private:
  friend class StepGate;
  ReadGuard(const StepGate* gate, uint64_t seen) : gate_(gate), seen_(seen) {}

  const StepGate* gate_;
  uint64_t seen_;
};

class StepGate {
 public:
  StepGate() = default;
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // Open while the parameters are written. Steps may nest and overlap.
  class Step {
   public:
    explicit Step(StepGate& gate) : gate_(gate) {
      gate_.open_.fetch_add(1);
      gate_.begun_.fetch_add(1);
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() { gate_.open_.fetch_sub(1); }

   private:
    StepGate& gate_;
  };

  // Aborted while a step is open.
  absl::StatusOr<ReadGuard> Read() const {
    const uint64_t seen = begun_.load();
    if (open_.load() != 0) {
      return absl::AbortedError("an optimizer step is writing the parameters; sync between steps");
    }
    return ReadGuard(this, seen);
  }

 private:
  friend class ReadGuard;

  std::atomic<uint64_t> begun_{0};
  std::atomic<int64_t> open_{0};
};

inline bool ReadGuard::Unchanged() const { return gate_->begun_.load() == seen_; }

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_READ_GUARD_H_
