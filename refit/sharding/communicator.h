// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Communicator: how the trainer's ranks meet during a refit. Rank 0 is the root: it fills the
// transport's slots, the others contribute the shards that they hold.
//
// SPMD: every rank makes the same calls in the same order, rounds of
//
//   BeginRound, Gather or Broadcast, ..., EndRound
//
// - A failure on one rank is a failure on all: whatever another rank waits for in that round
//   returns the first one's error, with its rank. After that only BeginRound() is left, where the
//   ranks meet again and what is left of the failed round is dropped; every other call returns the
//   error again.
// - Rounds are counted, also those that failed: the n-th BeginRound of a rank meets the n-th of the
//   others.
// - A rank that died is Unavailable on every other one, in this round and for good.
// - A rank that calls in another order, or with another tag, is FailedPrecondition on all ranks,
//   and the error names both.
// - A rank that does not come ends by the scope of those that wait: DeadlineExceeded, which names
//   the ranks that are missing. Other errors are the first one's own, such as a scope's cause.
// Implementations are in communicators/: threads of one process, processes of one machine, and of
// several. One thread at a time uses a rank's communicator.
//
//   WS_RETURN_IF_ERROR(communicator.BeginRound(version, absl::OkStatus(), scope));
//   WS_RETURN_IF_ERROR(communicator.Gather(/*tag=*/bucket, sizes, write, read, scope));
//   WS_RETURN_IF_ERROR(communicator.EndRound(unchanged, scope));

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATOR_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"

namespace weight_sync::refit {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Meets all ranks. OK where every rank came with the same tag and with OK.
  virtual absl::Status BeginRound(int64_t tag, const absl::Status& mine,
                                  const base::CancelScope& scope) = 0;

  // Writes this rank's message of sizes[rank] bytes, by `write`, into memory of the communicator;
  // on rank 0 it calls `read` for each other rank's message instead, once each and in any order.
  // A rank whose size is 0 takes part as well, without a call. Rank 0's own size is 0. Rank 0 knows
  // all sizes, another one at least its own. A rank may be some messages ahead of rank 0.
  using Write = absl::FunctionRef<void(absl::Span<std::byte> message)>;
  using Read = absl::FunctionRef<void(int rank, absl::Span<const std::byte> message)>;
  virtual absl::Status Gather(int64_t tag, absl::Span<const int64_t> sizes, Write write, Read read,
                              const base::CancelScope& scope) = 0;

  // Rank 0's value, on every rank. Rank 0 need not wait for the others.
  virtual absl::StatusOr<int64_t> Broadcast(int64_t tag, int64_t value,
                                            const base::CancelScope& scope) = 0;

  // Meets all ranks if `mine` is OK, and is OK if all are. An error is told to the others without
  // waiting for them, and returned.
  virtual absl::Status EndRound(const absl::Status& mine, const base::CancelScope& scope) = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATOR_H_
