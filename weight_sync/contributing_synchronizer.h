// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ContributingSynchronizer: the WeightSynchronizer of a sharded trainer's ranks other than 0, whatever
// the transport: it has no engine, and its SyncWeights() gives rank 0 what this rank's shards hold.
// Made by CreateWeightSynchronizer. The policy's memory phases are called around that, each
// OffloadAfterRefit once for its OffloadBeforeRefit.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_CONTRIBUTING_SYNCHRONIZER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_CONTRIBUTING_SYNCHRONIZER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "refit/sharding/communicator.h"
#include "weight_sync/call_gate.h"
#include "weight_sync/compiled_refit.h"
#include "weight_sync/options.h"
#include "weight_sync/policy.h"
#include "weight_sync/sync_report.h"
#include "weight_sync/trainer_ranks.h"
#include "weight_sync/version_ledger.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync {

class ContributingSynchronizer : public WeightSynchronizer {
 public:
  // `options` have passed CheckOptions.
  ContributingSynchronizer(const SynchronizerOptions& options, Policy* policy,
                           refit::Communicator* communicator);
  ~ContributingSynchronizer() override;

  absl::Status InitCommunicator() override;
  void MarkStale() override { ledger_.MarkStale(); }
  bool is_stale() const override { return ledger_.is_stale(); }
  refit::Version policy_version() const override { return ledger_.policy_version(); }
  absl::StatusOr<SyncReport> SyncWeights() override;
  absl::Status Shutdown() override;

 private:
  absl::Status Init(const base::CancelScope& scope);
  absl::Status Prepare(const absl::Status& mine, const base::CancelScope& scope);
  absl::StatusOr<SyncReport> Sync(const base::CancelScope& scope);
  absl::Status Contribute(const base::CancelScope& scope, SyncReport& report);

  const SynchronizerOptions options_;
  Policy* const policy_;
  const TrainerRanks ranks_;
  VersionLedger ledger_;
  CallGate gate_;
  CompiledRefit refit_;  // of the call that runs
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_CONTRIBUTING_SYNCHRONIZER_H_
