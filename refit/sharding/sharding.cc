// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/sharding.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::refit {

absl::StatusOr<Sharding> Sharding::FromPlacements(std::shared_ptr<const Mesh> mesh,
                                                  absl::Span<const Placement> placements,
                                                  const Shape& shape) {
  if (placements.size() != mesh->dims().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(placements.size(), " placements on the mesh (", mesh->ToString(), ")"));
  }
  Sharding sharding(std::move(mesh), shape);
  // From the right: a mesh dimension cuts before those to its right, a strided one after as many of
  // them as its split factor says.
  for (size_t m = placements.size(); m-- > 0;) {
    const Placement& placement = placements[m];
    const auto error = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("placement ", placement.ToString(), " on '",
                                                     sharding.mesh_->dims()[m].name, "' of ", shape,
                                                     ": ", what));
    };
    if (placement.kind == Placement::Kind::kReplicate) continue;
    if (placement.kind == Placement::Kind::kPartial) {
      return error("a parameter is not a sum that is still to be made; reduce it first");
    }
    const int dim = placement.dim < 0 ? placement.dim + shape.rank() : placement.dim;
    if (dim < 0 || dim >= shape.rank()) return error("there is no such dimension");
    std::vector<int>& cuts = sharding.cuts_[static_cast<size_t>(dim)];
    auto before = cuts.begin();
    if (placement.kind == Placement::Kind::kStridedShard) {
      int64_t product = 1;
      for (; before != cuts.end() && product < placement.split_factor; ++before) {
        product *= sharding.mesh_->dims()[static_cast<size_t>(*before)].size;
      }
      if (product != placement.split_factor) {
        return error(
            "the split factor is not the size of mesh dimensions to the right that shard "
            "the same dimension");
      }
    }
    cuts.insert(before, static_cast<int>(m));
  }
  return sharding;
}

absl::StatusOr<Sharding> Sharding::FromPartitionSpec(
    std::shared_ptr<const Mesh> mesh, absl::Span<const std::vector<std::string>> spec,
    const Shape& shape) {
  const std::string where =
      absl::StrCat("partition spec of ", shape, " on the mesh (", mesh->ToString(), "): ");
  const auto error = [&where](auto&&... what) {
    return absl::InvalidArgumentError(absl::StrCat(where, what...));
  };
  if (spec.size() > static_cast<size_t>(shape.rank())) {
    return error("it has ", spec.size(), " dimensions");
  }
  Sharding sharding(std::move(mesh), shape);
  std::set<int> used;
  for (size_t d = 0; d < spec.size(); ++d) {
    int64_t parts = 1;
    for (const std::string& name : spec[d]) {
      const std::optional<int> m = sharding.mesh_->FindDim(name);
      if (!m.has_value()) return error("there is no '", name, "'");
      if (!used.insert(*m).second) return error("'", name, "' is used twice");
      parts *= sharding.mesh_->dims()[static_cast<size_t>(*m)].size;
      sharding.cuts_[d].push_back(*m);
    }
    if (shape[static_cast<int>(d)] % parts != 0) {
      return error("dimension ", d, " does not divide into ", parts, " equal parts");
    }
  }
  return sharding;
}

Sharding Sharding::OnRankZero(const Shape& shape) {
  static const auto* const alone =
      new std::shared_ptr<const Mesh>(std::make_shared<const Mesh>(*Mesh::Create({{"rank", 1}})));
  return Sharding(*alone, shape);
}

bool Sharding::Contributes(int rank) const {
  const std::optional<std::vector<int>> coordinate = mesh_->CoordinateOf(rank);
  if (!coordinate.has_value()) return false;
  for (size_t m = 0; m < coordinate->size(); ++m) {
    const bool cuts = std::any_of(cuts_.begin(), cuts_.end(), [m](const std::vector<int>& dims) {
      return std::find(dims.begin(), dims.end(), static_cast<int>(m)) != dims.end();
    });
    if (!cuts && (*coordinate)[m] != 0) return false;
  }
  return true;
}

std::optional<Box> Sharding::LocalBox(int rank) const {
  const std::optional<std::vector<int>> coordinate = mesh_->CoordinateOf(rank);
  if (!coordinate.has_value()) return std::nullopt;
  Box box = Box::Whole(shape_);
  for (size_t d = 0; d < cuts_.size(); ++d) {
    for (const int m : cuts_[d]) {
      const int64_t size = box.size[d], parts = mesh_->dims()[static_cast<size_t>(m)].size;
      const int64_t chunk = (size + parts - 1) / parts;
      const int64_t begin = std::min((*coordinate)[static_cast<size_t>(m)] * chunk, size);
      box.begin[d] += begin;
      box.size[d] = std::min(chunk, size - begin);
    }
  }
  return box;
}

}  // namespace weight_sync::refit
