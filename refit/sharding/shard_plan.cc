// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/shard_plan.h"

#include <memory>
#include <vector>

#include "base/status_macros.h"
#include "refit/bucket_program.h"
#include "refit/layout/region_copy.h"
#include "refit/layout/region_parts.h"
#include "refit/layout/worker_pool.h"

namespace weight_sync::refit {
namespace {

class Compiler {
 public:
  Compiler(const WeightMap& map, const Holdings& holdings, int process, const CopyOptions& options)
      : map_(map), holdings_(holdings), process_(process) {
    const std::shared_ptr<WorkerPool> workers = CopyProgram::StartWorkers(options);
    plan_.processes = holdings.processes;
    plan_.own = CopyProgram(options, workers);
    for (int p = 0; process == 0 && p < holdings.processes; ++p) {
      plan_.from_others.emplace_back(options, workers);
    }
  }

  absl::StatusOr<ShardPlan> Compile(absl::Span<const Bucket> buckets) {
    for (const Bucket& bucket : buckets) {
      plan_.own.StartBucket();
      for (CopyProgram& program : plan_.from_others) program.StartBucket();
      messages_.assign(static_cast<size_t>(holdings_.processes), 0);
      for (const Piece& piece : bucket.pieces) {
        WS_RETURN_IF_ERROR(CheckPiece(piece, bucket, map_.hf()));
        WS_RETURN_IF_ERROR(AppendPiece(piece));
      }
      plan_.message_bytes.insert(plan_.message_bytes.end(), messages_.begin(), messages_.end());
    }
    return std::move(plan_);
  }

 private:
  // Of a region, with the begin that B's part has in the holding's box.
  struct HeldPart {
    int trainer;
    const Holding* holding;
    Region region;
  };

  absl::Status AppendPiece(const Piece& piece) {
    const DType dtype = map_.hf()[piece.tensor].dtype;
    if (map_.passes_through(piece.tensor)) {
      if (process_ != 0) return absl::OkStatus();
      const int view = holdings_.passed[static_cast<size_t>(piece.tensor)];
      plan_.own.Append(view, holdings_.views[static_cast<size_t>(view)], piece.box, piece.dst);
      return absl::OkStatus();
    }
    if (piece.tensor != tensor_) FindParts(piece.tensor);
    for (const HeldPart& part : parts_) WS_RETURN_IF_ERROR(AppendPart(part, piece, dtype));
    return absl::OkStatus();
  }

  // What is held of a tensor: once for all of its pieces, which follow one another.
  void FindParts(int tensor) {
    tensor_ = tensor;
    parts_.clear();
    std::vector<Region> regions;
    for (const WeightMap::MappedRegion& mapped : map_.regions(tensor)) {
      for (const Holding& holding : holdings_.by_trainer[static_cast<size_t>(mapped.trainer)]) {
        regions.clear();
        AppendPartsInB(mapped.region, holding.box, regions);
        for (Region& part : regions) {
          for (int dim = 0; dim < part.b.rank; ++dim) part.b.begin[dim] -= holding.box.begin[dim];
          parts_.push_back({mapped.trainer, &holding, part});
        }
      }
    }
  }

  absl::Status AppendPart(const HeldPart& held, const Piece& piece, DType dtype) {
    const Region& part = held.region;
    const Holding& holding = *held.holding;
    if (holding.process == process_) {
      const RegionSource source = {holding.view,
                                   holdings_.dtypes[static_cast<size_t>(held.trainer)],
                                   holdings_.views[static_cast<size_t>(holding.view)].strides()};
      if (process_ == 0) {
        return AppendRegion(part, source, piece.box, dtype, piece.dst, plan_.own);
      }
      int64_t& at = messages_[static_cast<size_t>(process_)];
      WS_ASSIGN_OR_RETURN(const int64_t bytes,
                          AppendPacked(part, source, piece.box, dtype, at, plan_.own));
      at += bytes;
      return absl::OkStatus();
    }
    if (holding.process == 0) return absl::OkStatus();
    const size_t other = static_cast<size_t>(holding.process);
    int64_t& at = messages_[other];
    WS_ASSIGN_OR_RETURN(const int64_t bytes,
                        process_ == 0 ? AppendUnpacked(part, 0, at, piece.box, dtype, piece.dst,
                                                       plan_.from_others[other])
                                      : PackedBytes(part, piece.box, dtype));
    at += bytes;
    return absl::OkStatus();
  }

  const WeightMap& map_;
  const Holdings& holdings_;
  const int process_;
  ShardPlan plan_;
  std::vector<int64_t> messages_;  // bytes so far of the bucket's, by process
  int tensor_ = -1;
  std::vector<HeldPart> parts_;  // of tensor_
};

}  // namespace

absl::StatusOr<ShardPlan> CompileShardPlan(const WeightMap& map, const Holdings& holdings,
                                           absl::Span<const Bucket> buckets, int process,
                                           const CopyOptions& options) {
  return Compiler(map, holdings, process, options).Compile(buckets);
}

}  // namespace weight_sync::refit
