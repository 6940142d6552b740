// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// IpcWeightSynchronizer: the WeightSynchronizer of a colocated engine, over IpcLink. Made by
// CreateWeightSynchronizer. It owns the memory phases around the transfer:
//
//   policy.OffloadBeforeRefit; engine wakes its weights; (sync); policy.OffloadAfterRefit; engine
//   wakes its KV cache; resume
//
// OffloadAfterRefit is called once for each OffloadBeforeRefit, whatever happens in between.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/packing/bucket.h"
#include "refit/refit_source.h"
#include "weight_sync/generation.h"
#include "weight_sync/link.h"
#include "weight_sync/options.h"
#include "weight_sync/policy.h"
#include "weight_sync/version_ledger.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync::ipc {

class IpcWeightSynchronizer : public WeightSynchronizer {
 public:
  // `options` have passed CheckOptions. `link` replaces the default IpcLink, for a caller that
  // wraps one.
  IpcWeightSynchronizer(const SynchronizerOptions& options, Policy* policy, Generation* generation,
                        std::unique_ptr<Link> link = nullptr);
  ~IpcWeightSynchronizer() override;

  absl::Status InitCommunicator() override;
  void MarkStale() override { ledger_.MarkStale(); }
  bool is_stale() const override { return ledger_.is_stale(); }
  absl::StatusOr<SyncReport> SyncWeights() override;
  absl::Status Shutdown() override;

 private:
  enum class State { kNew, kReady, kShutDown };

  // One caller at a time works with the link; `scope` is what Shutdown cancels meanwhile.
  absl::Status Enter(State needed, const char* what, base::CancelScope* scope);
  void Leave(State next);

  absl::Status Connect(const base::CancelScope& scope);
  absl::StatusOr<SyncReport> Sync(base::CancelScope& scope);

  const SynchronizerOptions options_;
  Policy* const policy_;
  Generation* const generation_;
  VersionLedger ledger_;

  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  base::CancelScope* active_ ABSL_GUARDED_BY(mutex_) = nullptr;

  // The active caller's.
  std::unique_ptr<Link> link_;
  std::vector<refit::Bucket> buckets_;
  base::Digest128 plan_;
  std::unique_ptr<refit::Program> program_;
  std::vector<base::Digest128> digests_;
  int64_t syncs_ = 0;  // that succeeded
};

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_WEIGHT_SYNCHRONIZER_H_
