// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepGate and ReadGuard: an optimizer step that overlaps a sync must make that sync fail. Bytes
// from two steps agree with their own digest and are still wrong, so only the source can tell.
//
// The trainer holds a StepGate beside its parameters and opens a Step around everything that writes
// them. A sync takes a ReadGuard first, and asks Unchanged() before it publishes. A step has the
// choice:
//
//   Step step(gate)                       goes on at once. A sync that is reading fails, and the next
//                                         one carries the new weights
//   Step::AfterSyncs(gate, deadline)      waits until no sync reads, and fails none
//
// All methods are thread-safe; a guard must not outlive its gate, nor a step.
//
//   StepGate gate;
//   { StepGate::Step step(gate); optimizer.step(); }              // trainer
//   WS_ASSIGN_OR_RETURN(ReadGuard guard, gate.Read());            // sync: begin
//   WS_RETURN_IF_ERROR(guard.Unchanged());                        // sync: before publishing

#ifndef WEIGHT_SYNC_REFIT_READ_GUARD_H_
#define WEIGHT_SYNC_REFIT_READ_GUARD_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"

namespace weight_sync::refit {

// One sync's reading of the parameters; it ends with the guard.
class ReadGuard {
 public:
  // What a source does while it is read.
  class Reading {
   public:
    virtual ~Reading() = default;
    virtual absl::Status Unchanged() = 0;
    virtual bool blocks_trainer() const { return true; }
  };

  explicit ReadGuard(std::unique_ptr<Reading> reading) : reading_(std::move(reading)) {}

  // Aborted when what was read may be of two versions: a step began meanwhile. Where several ranks
  // hold the parameters, each of them asks, and the answer is that of all.
  absl::Status Unchanged() const { return reading_->Unchanged(); }

  // Whether a step would be a failure, or wait: not when a copy of the parameters is read.
  bool blocks_trainer() const { return reading_->blocks_trainer(); }

 private:
  std::unique_ptr<Reading> reading_;
};

class StepGate {
 public:
  StepGate() = default;
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // Open while the parameters are written. Steps may nest and overlap.
  class Step {
   public:
    explicit Step(StepGate& gate);
    // DeadlineExceeded when a sync was still reading.
    static absl::StatusOr<Step> AfterSyncs(StepGate& gate, const base::Deadline& deadline);

    Step(Step&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Step& operator=(Step&&) = delete;
    ~Step();

   private:
    struct IsOpen {};
    Step(StepGate* gate, IsOpen) : gate_(gate) {}

    StepGate* gate_;
  };

  // Aborted while a step is open.
  absl::StatusOr<ReadGuard> Read() const;

 private:
  class GateReading;

  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t readers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_READ_GUARD_H_
