// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ShardPlan: who copies which bytes of each bucket. A process contributes one message a bucket: what
// its shards hold of the bucket's pieces, and nothing else. Process 0 copies from its own shards
// straight into the bucket, and the rest from the others' messages.
//
//   WS_ASSIGN_OR_RETURN(ShardPlan plan, CompileShardPlan(map, holdings, buckets, /*process=*/2));
//   plan.own.Run(bucket, bases, message);     // plan.sizes(bucket)[2] bytes

#ifndef WEIGHT_SYNC_REFIT_SHARDING_SHARD_PLAN_H_
#define WEIGHT_SYNC_REFIT_SHARDING_SHARD_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/bucket.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

// A box of a trainer tensor, and the process that contributes it.
struct Holding {
  int process;
  Box box;
  int view = -1;  // at that process: the number of the array that holds the box
};

// What the processes hold, as one of them knows it.
struct Holdings {
  int processes;
  std::vector<std::vector<Holding>> by_trainer;  // every element of a tensor once
  std::vector<DType> dtypes;                     // by trainer tensor
  std::vector<TensorView> views;  // of this process, without memory: how its arrays lie
  std::vector<int> passed;  // at process 0, by HF tensor: its view if it passes through, or -1
};

struct ShardPlan {
  int processes;
  // From the views of this process: at process 0 into the bucket, else into the message.
  CopyProgram own;
  // At process 0, by process: from its message, which is tensor 0, into the bucket.
  std::vector<CopyProgram> from_others;
  std::vector<int64_t> message_bytes;

  // Of the messages for a bucket, by process.
  absl::Span<const int64_t> sizes(int bucket) const {
    return absl::MakeConstSpan(message_bytes)
        .subspan(static_cast<size_t>(bucket) * static_cast<size_t>(processes),
                 static_cast<size_t>(processes));
  }
};

// InvalidArgument for pieces that are not in their tensors, and dtypes whose values cannot be kept.
// The programs share the threads that `options` asks for.
absl::StatusOr<ShardPlan> CompileShardPlan(const WeightMap& map, const Holdings& holdings,
                                           absl::Span<const Bucket> buckets, int process,
                                           const CopyOptions& options = {});

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_SHARD_PLAN_H_
