// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the synchronizer for a topology:
//
//   | topology      | engine | transport          |
//   | colocated     | vLLM   | IPC over ZeroMQ    |
//   | non-colocated | vLLM   | NCCL collective    |  not yet: Unimplemented
//   | colocated     | SGLang | HTTP               |  not yet: Unimplemented
//   | non-colocated | SGLang | none               |  Unimplemented
//
//   SynchronizerOptions options;
//   options.endpoint = base::DefaultEndpointPath("job-7", "engine-0");
//   WS_ASSIGN_OR_RETURN(auto synchronizer,
//                       CreateWeightSynchronizer(options, &policy, &generation));
//
// A trainer that is sharded over several processes makes one on each rank, with the same options.
// Rank 0 has the engine; the others none:
//
//   CreateWeightSynchronizer(options, &policy, rank == 0 ? &generation : nullptr, &communicator)

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_FACTORY_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "refit/sharding/communicator.h"
#include "weight_sync/generation.h"
#include "weight_sync/options.h"
#include "weight_sync/policy.h"
#include "weight_sync/weight_synchronizer.h"

namespace weight_sync {

// Policy, generation and communicator are borrowed and outlive the synchronizer. The communicator is
// the one that the policy's source has (refit/sharding/sharded_source.h), or null where one process
// has all parameters. InvalidArgument names a wrong setting, Unimplemented the topology and why.
absl::StatusOr<std::unique_ptr<WeightSynchronizer>> CreateWeightSynchronizer(
    const SynchronizerOptions& options, Policy* policy, Generation* generation,
    refit::Communicator* communicator = nullptr);

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_FACTORY_H_
