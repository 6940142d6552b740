// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ShardPlan: who copies which bytes of each bucket. Every process's contribution to a bucket is one
// message, dense, of what its shards hold of the bucket's pieces; process 0 copies from its own shards
// straight into the bucket, and from the others' messages.
//
//   WS_ASSIGN_OR_RETURN(ShardPlan plan, CompileShardPlan(map, holdings, buckets, /*process=*/2, 4));
//   plan.own.Run(bucket, bases, message);     // plan.bytes(bucket, 2) bytes of it

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
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

// A part of a trainer tensor that a process contributes.
struct Holding {
  int process;
  Box box;
  int view;            // of this process: the array that holds the box, or -1
  TensorView layout;   // of that array; without memory
};

// What all processes contribute, and what passes through from process 0.
struct Holdings {
  std::vector<std::vector<Holding>> trainer;  // by trainer tensor: each element once
  std::vector<DType> dtypes;                  // by trainer tensor
  std::vector<int> passed;                    // by HF tensor: its view at process 0, or -1
  std::vector<TensorView> passed_layouts;     // by HF tensor that passes through; else empty
};

struct ShardPlan {
  // From the views of this process: into the bucket at process 0, else into the message.
  CopyProgram own;
  // At process 0, by process: from its message (tensor 0) into the bucket.
  std::vector<CopyProgram> from_others;
  // Of the messages, a row a bucket, a column a process; 0 for process 0.
  std::vector<int64_t> message_bytes;
  int processes = 0;

  absl::Span<const int64_t> sizes(int bucket) const {
    return absl::MakeConstSpan(message_bytes)
        .subspan(static_cast<size_t>(bucket) * static_cast<size_t>(processes),
                 static_cast<size_t>(processes));
  }
};

// InvalidArgument for pieces that are not in their tensors and dtypes whose values cannot be kept.
absl::StatusOr<ShardPlan> CompileShardPlan(const WeightMap& map, const Holdings& holdings,
                                           absl::Span<const Bucket> buckets, int process,
                                           int processes);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_SHARD_PLAN_H_
