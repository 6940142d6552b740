// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the files of a checkpoint will look like, decided before the first byte is written: shards,
// headers, index. Only names, dtypes and shapes count; views may have no data.
//
//   WS_ASSIGN_OR_RETURN(const CheckpointPlan plan, PlanCheckpoint(tensors, 5'000'000'000, {}));
//   for (const FilePlan& file : plan.files) Write(file.name, file.head, file.tensors);

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_PLAN_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/checkpoint/named_tensor.h"

namespace weight_sync::refit {

// A file's first bytes, then the tensors, one after another.
struct FilePlan {
  std::string name;  // in its directory
  std::string head;  // the header's length and the header
  std::vector<const NamedTensor*> tensors;
  int64_t tensor_bytes = 0;
};

struct CheckpointPlan {
  std::vector<FilePlan> files;  // one, or shards
  std::string index_name;
  std::string index;  // its text; empty where there is one file
};

// Both refer to `tensors`. InvalidArgument as safetensors_writer.h says.
absl::StatusOr<FilePlan> PlanFile(absl::Span<const NamedTensor> tensors,
                                  const std::map<std::string, std::string>& metadata);
absl::StatusOr<CheckpointPlan> PlanCheckpoint(absl::Span<const NamedTensor> tensors,
                                              int64_t max_shard_bytes,
                                              const std::map<std::string, std::string>& metadata);

// FailedPrecondition when the directory holds *.safetensors or an index.
absl::Status CheckHoldsNoCheckpoint(const std::string& directory);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_PLAN_H_
