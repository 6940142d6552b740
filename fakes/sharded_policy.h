// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ShardedPolicy: one rank of a trainer whose parameters, a tiny Qwen3's, are sharded by rows over all
// ranks, as FSDP does. Ranks with the same seed and steps hold the same model. The whole model is in
// memory on every rank, so that tests can compare, but a rank gives only its rows. Counts its memory
// phases. Not thread-safe, but for the gate.
//
//   WS_ASSIGN_OR_RETURN(auto policy, ShardedPolicy::Create(communicator, /*seed=*/7));
//   policy->Step();
//   WS_RETURN_IF_ERROR(policy->Bind(synchronizer->policy_version()));

#ifndef WEIGHT_SYNC_FAKES_SHARDED_POLICY_H_
#define WEIGHT_SYNC_FAKES_SHARDED_POLICY_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fakes/counting_policy.h"
#include "fakes/parameters.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/sharded_source.h"
#include "refit/version.h"

namespace weight_sync::fakes {

class ShardedPolicy : public CountingPolicy {
 public:
  // Of the model: what its engine must expect.
  static refit::RefitInfo Info();

  static absl::StatusOr<std::unique_ptr<ShardedPolicy>> Create(refit::Communicator* communicator,
                                                               uint64_t seed);

  refit::ShardedSource& source() override { return *source_; }

  // One optimizer step: every element changes.
  void Step();
  // This rank's rows, as they are now, are of this version.
  absl::Status Bind(refit::Version version) { return source_->Bind(version, shards_); }

  refit::StepGate& gate() { return gate_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  ShardedPolicy(Parameters parameters, uint64_t seed)
      : parameters_(std::move(parameters)), seed_(seed) {}

  Parameters parameters_;
  const uint64_t seed_;
  int64_t steps_ = 0;
  refit::StepGate gate_;
  std::vector<refit::ShardArray> shards_;
  std::unique_ptr<refit::ShardedSource> source_;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_SHARDED_POLICY_H_
