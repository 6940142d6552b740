// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SyncPair: a trainer here and an engine in a process of its own, with the product's transport
// between them, driven by RunSync. The engine is a FakeEngine without faults, which stores each
// piece into its own table as a real loader does; it adds two compares a piece.
//
//   WS_ASSIGN_OR_RETURN(auto pair, SyncPair::Start(info, kEngineCore));
//   WS_RETURN_IF_ERROR(pair->Connect({4, 1 << 20}));
//   WS_ASSIGN_OR_RETURN(double seconds, pair->Sync(/*wire_digests=*/true));
//   WS_RETURN_IF_ERROR(pair->Verify());

#ifndef WEIGHT_SYNC_BENCHMARKS_SYNC_PAIR_H_
#define WEIGHT_SYNC_BENCHMARKS_SYNC_PAIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/testing/socket_folder.h"
#include "fakes/engine_process.h"
#include "fakes/seeded_policy.h"
#include "refit/packing/bucket.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/sync_driver.h"

namespace weight_sync::benchmarks {

class SyncPair {
 public:
  static absl::StatusOr<std::unique_ptr<SyncPair>> Start(const refit::RefitInfo& info,
                                                         int engine_core);

  int64_t bytes() const { return policy_->source().info().total_bytes(); }

  // Connects, or connects anew with another ring.
  absl::Status Connect(const ipc::RingLayout& ring);

  // One whole sync, from the engine's pause to its resume; the seconds that it took.
  absl::StatusOr<double> Sync(bool wire_digests);

  // An optimizer step: every element changes.
  void Step() { policy_->Step(); }

  // DataLoss unless the engine answers with the last sync's version and with digests of its own
  // table that equal the trainer's parameters.
  absl::Status Verify();

 private:
  SyncPair() = default;

  base::testing::SocketFolder directory_;
  std::unique_ptr<fakes::SeededPolicy> policy_;
  std::unique_ptr<fakes::EngineProcess> engine_;
  std::unique_ptr<native::NativeGeneration> generation_;
  std::unique_ptr<ipc::IpcLink> link_;
  std::vector<refit::Bucket> buckets_;
  base::Digest128 plan_;
  std::unique_ptr<refit::Program> program_;
  std::vector<base::Digest128> digests_;
  refit::Version version_ = -1;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_SYNC_PAIR_H_
