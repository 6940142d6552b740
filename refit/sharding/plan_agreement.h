// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PlanAgreement: whether all processes of a trainer were made alike, asked at the beginning of each
// sync: those that were made for different maps, buckets or shards would read each other's messages
// wrongly.
//
// Shards may be declared differently in one way. torch puts a parameter that tensor parallelism does
// not cut on a mesh of its own for each tensor-parallel rank: with ranks {0, 1; 2, 3} it is on {0, 2}
// for ranks 0 and 2, and on {1, 3} for the others, whole on each. Process 0's declaration counts:
// processes that are not on its mesh contribute nothing of that parameter.
//
// SPMD over a communicator whose round is open. Once all agree, a sync asks for no more than 16 bytes
// of each process and one answer.
//
//   PlanAgreement agreement({frame, by_trainer});
//   WS_ASSIGN_OR_RETURN(std::vector<int> left, agreement.Agree(communicator, on_mesh, name, scope));

#ifndef WEIGHT_SYNC_REFIT_SHARDING_PLAN_AGREEMENT_H_
#define WEIGHT_SYNC_REFIT_SHARDING_PLAN_AGREEMENT_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/sharding/communicator.h"

namespace weight_sync::refit {

class PlanAgreement {
 public:
  struct Digests {
    base::Digest128 frame;                    // of all that has no exception
    std::vector<base::Digest128> by_trainer;  // of what is held of each tensor, by whom
  };
  using OnMesh = absl::FunctionRef<bool(int trainer, int process)>;  // of process 0's declaration
  using Name = absl::FunctionRef<std::string(int trainer)>;

  explicit PlanAgreement(Digests digests);

  // The trainer tensors that this process leaves to process 0, though it declared to hold of them:
  // told once, where it was made otherwise. FailedPrecondition names the processes that were made for
  // something else, or the tensors and who declared them otherwise. Process 0 alone asks OnMesh and
  // Name.
  absl::StatusOr<std::vector<int>> Agree(Communicator& communicator, OnMesh on_mesh, Name name,
                                         const base::CancelScope& scope);

 private:
  absl::StatusOr<std::vector<int>> FindOdd(Communicator& communicator, OnMesh on_mesh, Name name,
                                           const base::CancelScope& scope) const;
  absl::StatusOr<std::vector<int>> ShareOdd(Communicator& communicator, absl::Span<const int> odd,
                                            const base::CancelScope& scope) const;

  Digests digests_;
  base::Digest128 fingerprint_;  // of all of them; process 0's once this one has adapted to it
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_PLAN_AGREEMENT_H_
