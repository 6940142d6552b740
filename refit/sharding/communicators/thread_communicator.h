// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one process: a thread each, which take one of these each. Destroying one of them is
// that rank's death to the others.
//
// InvalidArgument if `size` is not positive; ResourceExhausted where the process may open no more
// descriptors (two a rank).
//
//   WS_ASSIGN_OR_RETURN(auto ranks, refit::MakeThreadCommunicators(4));
//   std::thread other([rank = std::move(ranks[1])] { ... rank->BeginRound(...); ... });

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_THREAD_COMMUNICATOR_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_THREAD_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/sharding/communicator.h"

namespace weight_sync::refit {

// By rank.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(int size);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_THREAD_COMMUNICATOR_H_
