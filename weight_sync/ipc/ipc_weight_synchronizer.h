// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// IpcWeightSynchronizer: the WeightSynchronizer of a colocated engine, over IpcLink. Made by
// CreateWeightSynchronizer. It owns the memory phases around the transfer:
//
//   policy.OffloadBeforeRefit; engine wakes its weights; (sync); policy.OffloadAfterRefit; engine
//   wakes its KV cache; resume
//
// OffloadAfterRefit is called once for each OffloadBeforeRefit, whatever happens in between. Of a
// sharded trainer this is rank 0's.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/packing/packer.h"
#include "refit/sharding/communicator.h"
#include "weight_sync/call_gate.h"
#include "weight_sync/compiled_refit.h"
#include "weight_sync/generation.h"
#include "weight_sync/link.h"
#include "weight_sync/options.h"
#include "weight_sync/policy.h"
#include "weight_sync/trainer_ranks.h"
#include "weight_sync/version_ledger.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync::ipc {

class IpcWeightSynchronizer : public WeightSynchronizer {
 public:
  // `options` have passed CheckOptions. `link` replaces the default IpcLink, for a caller that
  // wraps one. `communicator` is null for a trainer of one process.
  IpcWeightSynchronizer(const SynchronizerOptions& options, Policy* policy, Generation* generation,
                        std::unique_ptr<Link> link = nullptr,
                        refit::Communicator* communicator = nullptr);
  ~IpcWeightSynchronizer() override;

  absl::Status InitCommunicator() override;
  void MarkStale() override { ledger_.MarkStale(); }
  bool is_stale() const override { return ledger_.is_stale(); }
  refit::Version policy_version() const override { return ledger_.policy_version(); }
  absl::StatusOr<SyncReport> SyncWeights() override;
  absl::Status Shutdown() override;

 private:
  absl::Status Init(const base::CancelScope& scope);
  absl::Status Connect(const base::CancelScope& scope);
  // Together with the other ranks.
  absl::Status Prepare(const absl::Status& mine, const base::CancelScope& scope);
  absl::Status Conclude(const absl::Status& mine);
  absl::StatusOr<SyncReport> Sync(base::CancelScope& scope);

  const SynchronizerOptions options_;
  Policy* const policy_;
  Generation* const generation_;
  const TrainerRanks ranks_;
  VersionLedger ledger_;
  CallGate gate_;

  // Of the call that runs.
  std::unique_ptr<Link> link_;
  refit::Geometry geometry_;  // what the link agreed on last
  CompiledRefit refit_;
  std::vector<base::Digest128> digests_;
  int64_t syncs_ = 0;  // that succeeded
};

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_
