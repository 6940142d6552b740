// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/roundtrip/simulated_ranks.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/contribute.h"
#include "refit/read_guard.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "refit/sharding/placement.h"
#include "refit/sharding/sharded_source.h"
#include "refit/sharding/sharding.h"
#include "tools/weight_sync/common/fill_buckets.h"

namespace weight_sync::roundtrip {
namespace {

using refit::Placement;
using refit::ShardedSource;

// The last mesh dimension cuts the first dimension first, each one before it what is left.
absl::StatusOr<refit::Sharding> AlongTheFirstDimension(
    const std::shared_ptr<const refit::Mesh>& mesh, const refit::Shape& shape) {
  std::vector<Placement> placements(mesh->dims().size());
  int64_t behind = 1;
  for (size_t m = placements.size(); m-- > 0 && shape.rank() > 0;) {
    placements[m] = behind == 1 ? Placement::Shard(0) : Placement::StridedShard(0, behind);
    behind *= mesh->dims()[m].size;
  }
  return refit::Sharding::FromPlacements(mesh, placements, shape);
}

// The part of a contiguous array.
refit::TensorView PartOf(const refit::TensorView& whole, const refit::Box& box) {
  int64_t before = 0;
  if (whole.shape().rank() > 0 && whole.shape()[0] > 0) {
    before = whole.num_bytes() / whole.shape()[0] * box.begin[0];
  }
  return refit::TensorView::Contiguous(whole.data() + before, whole.dtype(), box.shape());
}

}  // namespace

absl::StatusOr<refit::Mesh> ParseMesh(absl::string_view text) {
  constexpr int64_t kMostRanks = 64;
  std::vector<refit::Mesh::Dim> dims;
  int64_t ranks = 1;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(part, '=');
    int size = 0;
    if (!absl::SimpleAtoi(sides.second, &size) || size < 1 || size > kMostRanks) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "' is no mesh; one is dp=2,tp=2, of up to ", kMostRanks, " ranks"));
    }
    dims.push_back({std::string(sides.first), size});
    ranks *= size;
    if (ranks > kMostRanks) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMostRanks, " ranks"));
    }
  }
  return refit::Mesh::Create(std::move(dims));
}

absl::Status FillBucketsFromShards(const refit::WeightMap& map,
                                   absl::Span<const refit::TrainerArray> arrays,
                                   const refit::Checkpoint& checkpoint, const refit::Mesh& mesh,
                                   absl::Span<const refit::Bucket> buckets,
                                   absl::FunctionRef<std::byte*(size_t bucket)> place,
                                   absl::FunctionRef<void(size_t bucket)> filled) {
  const auto shared_mesh = std::make_shared<const refit::Mesh>(mesh);
  std::vector<refit::ShardedSpec> specs;
  for (const refit::TrainerArray& array : arrays) {
    WS_ASSIGN_OR_RETURN(refit::Sharding sharding,
                        AlongTheFirstDimension(shared_mesh, array.view.shape()));
    specs.push_back({array.name, array.view.dtype(), std::move(sharding)});
  }

  const refit::StepGate gate;
  const int ranks = static_cast<int>(mesh.ranks().size());
  WS_ASSIGN_OR_RETURN(auto communicators, refit::MakeThreadCommunicators(ranks));
  std::vector<std::unique_ptr<ShardedSource>> sources;
  std::vector<std::unique_ptr<refit::Program>> programs;
  for (int rank = 0; rank < ranks; ++rank) {
    WS_ASSIGN_OR_RETURN(std::unique_ptr<ShardedSource> source,
                        ShardedSource::Create(map, specs, &checkpoint, &gate,
                                              communicators[static_cast<size_t>(rank)].get()));
    std::vector<refit::ShardArray> shards;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const refit::Box box = *specs[i].sharding.LocalBox(rank);
      shards.push_back({arrays[i].name, PartOf(arrays[i].view, box), rank});
    }
    WS_RETURN_IF_ERROR(source->Bind(tools::kFilledVersion, shards));
    if (rank > 0) {
      WS_ASSIGN_OR_RETURN(programs.emplace_back(), source->Compile(buckets));
    }
    sources.push_back(std::move(source));
  }

  const base::CancelScope scope(base::Deadline::After(absl::Hours(24)));
  std::vector<absl::Status> contributed(static_cast<size_t>(ranks));
  std::vector<std::thread> others;
  for (int rank = 1; rank < ranks; ++rank) {
    const size_t r = static_cast<size_t>(rank);
    others.emplace_back([&, r] {
      contributed[r] =
          refit::Contribute(*programs[r - 1], buckets.size(), tools::kFilledVersion, scope);
    });
  }
  const absl::Status status = tools::FillBuckets(*sources[0], buckets, place, filled);
  if (!status.ok()) communicators[0].reset();  // also of ranks that it has never met
  for (std::thread& other : others) other.join();
  WS_RETURN_IF_ERROR(status);
  for (int rank = 1; rank < ranks; ++rank) {
    WS_RETURN_IF_ERROR(
        base::Prefixed(absl::StrCat("rank ", rank), contributed[static_cast<size_t>(rank)]));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::roundtrip
