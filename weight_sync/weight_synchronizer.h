// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// WeightSynchronizer: owns the transfer of a policy's weights to its inference engine and hides
// transport and topology from the training loop. CreateWeightSynchronizer (factory.h) makes the one
// for a topology.
//
// The staleness handshake: MarkStale() after each optimizer step; before generating, if is_stale(),
// SyncWeights(), then the generation's PrepareForGeneration(). A sync carries the version that it
// read at its start, so a mark during a sync leaves the engine stale. A fresh synchronizer is stale
// unless it was told, and the engine confirms, which version the engine holds.
//
// A sync completes or fails whole. After a failure the engine stays stale here; if it may hold new
// bytes it stays paused and dirty, and the next SyncWeights() does a full sync.
//
// Where a trainer is sharded over several processes, each rank has one, and all of them make the same
// calls in the same order. The rank that has no engine gives what its shards hold. A sync that fails
// on one rank fails on all, and one that succeeds was published before any returns. (A rank that is
// cut off at the very last may alone call a published one failed, and its next sync puts it right.)
//
// Thread-safe. MarkStale and is_stale never wait. A second SyncWeights while one runs is
// FailedPrecondition; Shutdown cancels the one that runs (it returns Aborted) and waits for it.
//
//   WS_ASSIGN_OR_RETURN(auto synchronizer,
//                       CreateWeightSynchronizer(options, &policy, &generation));
//   WS_RETURN_IF_ERROR(synchronizer->InitCommunicator());
//   for (;;) {
//     if (synchronizer->is_stale()) WS_RETURN_IF_ERROR(synchronizer->SyncWeights().status());
//     WS_RETURN_IF_ERROR(generation.PrepareForGeneration(kAllTags, scope));
//     Rollout();
//     TrainStep();
//     synchronizer->MarkStale();
//   }

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_SYNCHRONIZER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_SYNCHRONIZER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "refit/version.h"
#include "weight_sync/sync_report.h"

namespace weight_sync {

class WeightSynchronizer {
 public:
  // Shuts down.
  virtual ~WeightSynchronizer() = default;

  // Connects, and agrees with the engine on tensors and geometry. Names, shapes or dtypes that
  // differ are InvalidArgument here, before any byte. Once; a restarted engine is found again by
  // SyncWeights itself.
  virtual absl::Status InitCommunicator() = 0;

  virtual void MarkStale() = 0;
  virtual bool is_stale() const = 0;

  // Of the weights that the next sync carries: what their source must be bound to.
  virtual refit::Version policy_version() const = 0;

  virtual absl::StatusOr<SyncReport> SyncWeights() = 0;

  // After it everything is FailedPrecondition; a second one is harmless.
  virtual absl::Status Shutdown() = 0;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_SYNCHRONIZER_H_
