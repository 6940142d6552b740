// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TrainerRanks: where the synchronizers of a sharded trainer's ranks meet, before and after the
// transfer in which their sources meet (refit/sharding). Rank 0 has the engine, and the others learn
// from it what they must know: they compile for the same buckets, and call a version published only
// if it is.
//
//   InitCommunicator   Prepare, Share(engine's version)
//   SyncWeights        Prepare, (the transfer), Conclude
//
// SPMD: all ranks make these calls in this order. An error on one rank is one on all, whose text says
// on which. A trainer of one process meets nobody. One thread at a time.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_TRAINER_RANKS_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_TRAINER_RANKS_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "refit/packing/packer.h"
#include "refit/sharding/communicator.h"
#include "refit/version.h"

namespace weight_sync {

class TrainerRanks {
 public:
  // Null for a trainer of one process.
  explicit TrainerRanks(refit::Communicator* communicator) : communicator_(communicator) {}

  bool several() const { return communicator_ != nullptr; }

  // Rank 0 brings the geometry that its engine takes, and every rank compiles for it. `mine` is what
  // became of all that this rank did before.
  absl::Status Prepare(const absl::Status& mine, const refit::Geometry& geometry,
                       absl::FunctionRef<absl::Status(const refit::Geometry&)> compile,
                       const base::CancelScope& scope) const;

  // Rank 0's version, or none, on every rank.
  absl::StatusOr<std::optional<refit::Version>> Share(const absl::Status& mine,
                                                      std::optional<refit::Version> version,
                                                      const base::CancelScope& scope) const;

  // What became of the whole sync.
  absl::Status Conclude(const absl::Status& mine, const base::CancelScope& scope) const;

 private:
  refit::Communicator* const communicator_;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_TRAINER_RANKS_H_
