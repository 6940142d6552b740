// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/shard_plan.h"

#include <vector>

#include "base/status_macros.h"
#include "refit/bucket_program.h"
#include "refit/layout/region_copy.h"
#include "refit/layout/region_parts.h"

namespace weight_sync::refit {
namespace {

class Compiler {
 public:
  Compiler(const WeightMap& map, const Holdings& holdings, int process)
      : map_(map), holdings_(holdings), process_(process) {
    plan_.processes = holdings.processes;
    if (process == 0) plan_.from_others.resize(static_cast<size_t>(holdings.processes));
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
  absl::Status AppendPiece(const Piece& piece) {
    const DType dtype = map_.hf()[piece.tensor].dtype;
    if (map_.passes_through(piece.tensor)) {
      if (process_ != 0) return absl::OkStatus();
      const int view = holdings_.passed[static_cast<size_t>(piece.tensor)];
      plan_.own.Append(view, holdings_.views[static_cast<size_t>(view)], piece.box, piece.dst);
      return absl::OkStatus();
    }
    for (const WeightMap::MappedRegion& mapped : map_.regions(piece.tensor)) {
      for (const Holding& holding : holdings_.by_trainer[static_cast<size_t>(mapped.trainer)]) {
        parts_.clear();
        AppendPartsInB(mapped.region, holding.box, parts_);
        for (Region& part : parts_) {
          for (int dim = 0; dim < part.b.rank; ++dim) part.b.begin[dim] -= holding.box.begin[dim];
          WS_RETURN_IF_ERROR(AppendPart(part, mapped.trainer, holding, piece, dtype));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AppendPart(const Region& part, int trainer, const Holding& holding,
                          const Piece& piece, DType dtype) {
    if (holding.process == process_) {
      const RegionSource source = {holding.view, holdings_.dtypes[static_cast<size_t>(trainer)],
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
  std::vector<Region> parts_;
};

}  // namespace

absl::StatusOr<ShardPlan> CompileShardPlan(const WeightMap& map, const Holdings& holdings,
                                           absl::Span<const Bucket> buckets, int process) {
  return Compiler(map, holdings, process).Compile(buckets);
}

}  // namespace weight_sync::refit
