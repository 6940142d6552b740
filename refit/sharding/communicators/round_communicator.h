// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RoundCommunicator: what all ranks' ends have in common: which call may come now, and what a round
// that failed, or a rank that died, means for the calls after it.
//
// Rounds are counted, also those that failed: the n-th BeginRound of one rank meets the n-th of the
// others. A frame carries its round, so what is left of an old one is known as such.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROUND_COMMUNICATOR_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROUND_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/peer_process.h"
#include "base/unique_fd.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/frame_socket.h"

namespace weight_sync::refit {

// A connection between rank 0 and another rank, from either end.
struct RankConnection {
  std::unique_ptr<FrameSocket> socket;
  // For the messages, where they do not lie in memory that both ends see.
  base::UniqueFd payload;
  // The other end's process, where it can be seen: a child that it forked may keep the socket open
  // after its death.
  std::optional<base::PeerProcess> process;
};

// One call of a rank: kBegin, kMessage (Gather), kBroadcast or kEnd.
struct Call {
  FrameKind kind;
  int64_t tag = 0;
};
std::string Name(const Call& call);  // "Gather(tag 3)"

class RoundCommunicator : public Communicator {
 public:
  RoundCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const final { return rank_; }
  int size() const final { return size_; }
  absl::Status BeginRound(int64_t tag, const absl::Status& mine,
                          const base::CancelScope& scope) final;
  absl::Status Gather(int64_t tag, absl::Span<const int64_t> sizes, Write write, Read read,
                      const base::CancelScope& scope) final;
  absl::StatusOr<int64_t> Broadcast(int64_t tag, int64_t value,
                                    const base::CancelScope& scope) final;
  absl::Status EndRound(const absl::Status& mine, const base::CancelScope& scope) final;

 protected:
  // The calls themselves, in their order, with valid arguments and no error so far. An error that
  // they return has gone through Fail, FailedBy or Lose.
  virtual absl::Status DoBegin(const Call& call, const base::CancelScope& scope) = 0;
  virtual absl::Status DoGather(const Call& call, absl::Span<const int64_t> sizes, Write write,
                                Read read, const base::CancelScope& scope) = 0;
  virtual absl::StatusOr<int64_t> DoBroadcast(const Call& call, int64_t value,
                                              const base::CancelScope& scope) = 0;
  virtual absl::Status DoEnd(const Call& call, const base::CancelScope& scope) = 0;
  // Tells the other ranks, without waiting for them.
  virtual void Tell(const Frame& status) = 0;
  // Sends what could not be told before.
  virtual void FlushNow() = 0;

  // Each ends the round here and returns its error. Fail: it is this rank's, or `shared` by all
  // (and names ranks itself). FailedBy: `frame` told it. Lose: for good.
  absl::Status Fail(const absl::Status& mine, bool shared = false);
  absl::Status FailedBy(const Frame& frame);
  absl::Status Lose(const absl::Status& why);

  // The error where `other`'s call is not the one that this rank is in, for all ranks.
  absl::Status Mismatch(int other, absl::string_view its_call, absl::string_view my_call);

  int64_t round() const { return round_; }

 private:
  enum class Phase { kBetween, kOpen, kFailed };

  // OK if `call` may come now, and nothing is known that fails it.
  absl::Status Enter(const Call& call, const absl::Status& mine, const base::CancelScope& scope);
  absl::Status CheckSizes(absl::Span<const int64_t> sizes) const;

  const int rank_;
  const int size_;
  Phase phase_ = Phase::kBetween;
  int64_t round_ = 0;
  int64_t round_tag_ = 0;
  absl::Status failure_;  // of this round
  absl::Status lost_;     // for good
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_ROUND_COMMUNICATOR_H_
