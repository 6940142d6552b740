// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Mesh: the trainer's ranks laid out in named dimensions, as torch's DeviceMesh and jax's Mesh do.
//
// Parameters may live on different meshes over the same ranks: dense ones on (dp, tp), experts on
// (ep), those of a pipeline stage on a part of the ranks. Immutable, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create({{"dp", 2}, {"tp", 4}}));       // ranks 0 to 7
//   mesh.CoordinateOf(5);                                                       // {1, 1}
//   WS_ASSIGN_OR_RETURN(Mesh second_stage, Mesh::Create({{"dp", 4}}, {4, 5, 6, 7}));

#ifndef WEIGHT_SYNC_REFIT_SHARDING_MESH_H_
#define WEIGHT_SYNC_REFIT_SHARDING_MESH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::refit {

class Mesh {
 public:
  struct Dim {
    std::string name;
    int size;
  };

  // `ranks` in row-major order of the dimensions; empty: 0, 1, 2, ... InvalidArgument for a size
  // below 1, names that are empty or repeated, and ranks that are negative, repeated or not as many
  // as the mesh has places.
  static absl::StatusOr<Mesh> Create(std::vector<Dim> dims, std::vector<int> ranks = {});

  const std::vector<Dim>& dims() const { return dims_; }
  const std::vector<int>& ranks() const { return ranks_; }
  std::optional<int> FindDim(absl::string_view name) const;

  // One index a dimension; nothing for a rank that is not in the mesh.
  std::optional<std::vector<int>> CoordinateOf(int rank) const;

  // "dp=2, tp=4".
  std::string ToString() const;

 private:
  Mesh() = default;

  std::vector<Dim> dims_;
  std::vector<int> ranks_;
  absl::flat_hash_map<int, int> place_of_rank_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_MESH_H_
