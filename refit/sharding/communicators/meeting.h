// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of several processes find one another: rank 0 accepts connections until each rank
// has said hello on one, the others connect until rank 0 is there. See process_communicator.h.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEETING_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEETING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "base/unique_fd.h"
#include "refit/sharding/communicators/process_communicator.h"
#include "refit/sharding/communicators/round_communicator.h"

namespace weight_sync::refit {

// InvalidArgument unless it is a rank of a named job.
absl::Status CheckJobRank(const JobRank& me);

// Makes a connection of a connected socket whose other end is "rank <n>", or refuses it.
using Admit = std::function<absl::StatusOr<RankConnection>(base::UniqueFd fd)>;

// Whether messages go over a connection of their own.
enum class Payloads { kElsewhere, kConnected };

// Rank 0: the connections of the ranks 1, 2, ... `listener` does not block; `place` is what errors
// call it.
absl::StatusOr<std::vector<RankConnection>> AcceptRanks(const JobRank& me, int listener,
                                                        const std::string& place,
                                                        const Admit& admit, Payloads payloads,
                                                        const base::CancelScope& scope);

// A socket that connects to rank 0 without blocking: connected, or EINPROGRESS. Unavailable where
// it is worth to try again.
using Dial = std::function<absl::StatusOr<base::UniqueFd>()>;

// The others: the connection to rank 0.
absl::StatusOr<RankConnection> JoinRanks(const JobRank& me, const Dial& dial,
                                         const std::string& place, const Admit& admit,
                                         Payloads payloads, const base::CancelScope& scope);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_MEETING_H_
