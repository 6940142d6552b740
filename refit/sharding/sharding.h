// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sharding: which box of a tensor each rank holds. From torch's placements, one a mesh dimension, or
// from jax's PartitionSpec, mesh dimensions for each dimension of the tensor.
//
// Several mesh dimensions on one dimension of a tensor cut it one after another, each what the one
// before has left, so a rank's part is always one box; it may be empty. StridedShard over tensor
// parallelism is taken as torch lays it out in memory: first the tensor-parallel chunk, then the
// FSDP chunk of it, for every size (where its index arithmetic and its memory disagree, pytorch
// issue 168134, memory is right: full_tensor() agrees with it).
//
// Immutable, so thread-safe.
//
//   // [7, 64] over 3 x 2 ranks, FSDP2 over column parallelism.
//   auto mesh = std::make_shared<const Mesh>(*Mesh::Create({{"dp", 3}, {"tp", 2}}));
//   WS_ASSIGN_OR_RETURN(Sharding sharding, Sharding::FromPlacements(
//       mesh, {Placement::StridedShard(0, 2), Placement::Shard(0)}, {7, 64}));
//   *sharding.LocalBox(1);    // dp 0, tp 1: the second half's first chunk, [4, 0]+[1, 64]

#ifndef WEIGHT_SYNC_REFIT_SHARDING_SHARDING_H_
#define WEIGHT_SYNC_REFIT_SHARDING_SHARDING_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/sharding/mesh.h"
#include "refit/sharding/placement.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

class Sharding {
 public:
  // InvalidArgument for Partial, for a number of placements that is not the mesh's, a dimension that
  // the tensor does not have, and a split factor that no mesh dimensions to the right make.
  static absl::StatusOr<Sharding> FromPlacements(std::shared_ptr<const Mesh> mesh,
                                                 absl::Span<const Placement> placements,
                                                 const Shape& shape);

  // `spec` has for each dimension of the tensor the mesh dimensions that cut it, the major one
  // first; it may be shorter than the shape. InvalidArgument for a mesh dimension that is not there
  // or used twice, and a size that they do not divide.
  static absl::StatusOr<Sharding> FromPartitionSpec(std::shared_ptr<const Mesh> mesh,
                                                    absl::Span<const std::vector<std::string>> spec,
                                                    const Shape& shape);

  // Rank 0 holds all of it.
  static Sharding OnRankZero(const Shape& shape);

  const Mesh& mesh() const { return *mesh_; }
  const Shape& shape() const { return shape_; }

  // A rank that holds a part which no other rank contributes: of ranks that hold the same, the
  // first along each mesh dimension. Their boxes are the tensor, each element once.
  bool Contributes(int rank) const;

  // What the rank holds: nothing if it is not in the mesh, no elements if none are left for it.
  std::optional<Box> LocalBox(int rank) const;

 private:
  Sharding(std::shared_ptr<const Mesh> mesh, const Shape& shape)
      : mesh_(std::move(mesh)), shape_(shape), cuts_(static_cast<size_t>(shape.rank())) {}

  std::shared_ptr<const Mesh> mesh_;
  Shape shape_;
  std::vector<std::vector<int>> cuts_;  // by dimension: the mesh dimensions, in the order they cut
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_SHARDING_H_
