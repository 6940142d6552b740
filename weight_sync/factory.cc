// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/factory.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "weight_sync/contributing_synchronizer.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"

namespace weight_sync {

absl::StatusOr<std::unique_ptr<WeightSynchronizer>> CreateWeightSynchronizer(
    const SynchronizerOptions& options, Policy* policy, Generation* generation,
    refit::Communicator* communicator) {
  if (options.engine == EngineKind::kSglang) {
    return absl::UnimplementedError(
        options.colocated
            ? "colocated SGLang (HTTP transport) is not implemented yet; colocated vLLM is"
            : "non-colocated SGLang is not supported: it has no transport; colocate it");
  }
  if (!options.colocated) {
    return absl::UnimplementedError(
        "non-colocated vLLM (NCCL collective transport) is not implemented yet; colocated vLLM is");
  }
  if (policy == nullptr) return absl::InvalidArgumentError("policy is null");
  const int rank = communicator == nullptr ? 0 : communicator->rank();
  if (rank == 0 && generation == nullptr) return absl::InvalidArgumentError("generation is null");
  if (rank != 0 && generation != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " has a generation: only rank 0 drives the engine"));
  }
  WS_RETURN_IF_ERROR(CheckOptions(options));
  if (rank != 0) return std::make_unique<ContributingSynchronizer>(options, policy, communicator);
  return std::make_unique<ipc::IpcWeightSynchronizer>(options, policy, generation,
                                                      /*link=*/nullptr, communicator);
}

}  // namespace weight_sync
