// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/mesh.h"

#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit {

absl::StatusOr<Mesh> Mesh::Create(std::vector<Dim> dims, std::vector<int> ranks) {
  Mesh mesh;
  mesh.dims_ = std::move(dims);
  const std::string prefix = absl::StrCat("mesh (", mesh.ToString(), "): ");
  const auto error = [&prefix](auto&&... what) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, what...));
  };
  int64_t places = 1;
  for (size_t d = 0; d < mesh.dims_.size(); ++d) {
    const Dim& dim = mesh.dims_[d];
    if (dim.name.empty()) return error("dimension ", d, " has no name");
    if (dim.size < 1) return error("'", dim.name, "' has size ", dim.size);
    if (mesh.FindDim(dim.name) != static_cast<int>(d)) return error("'", dim.name, "' is twice");
    places *= dim.size;
    if (places > std::numeric_limits<int>::max()) return error("more than 2^31 ranks");
  }
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(places));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  if (static_cast<int64_t>(ranks.size()) != places) {
    return error(ranks.size(), " ranks for ", places, " places");
  }
  for (size_t place = 0; place < ranks.size(); ++place) {
    if (ranks[place] < 0) return error("rank ", ranks[place]);
    if (!mesh.place_of_rank_.emplace(ranks[place], static_cast<int>(place)).second) {
      return error("rank ", ranks[place], " is twice");
    }
  }
  mesh.ranks_ = std::move(ranks);
  return mesh;
}

std::optional<int> Mesh::FindDim(absl::string_view name) const {
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].name == name) return static_cast<int>(d);
  }
  return std::nullopt;
}

std::optional<std::vector<int>> Mesh::CoordinateOf(int rank) const {
  const auto found = place_of_rank_.find(rank);
  if (found == place_of_rank_.end()) return std::nullopt;
  std::vector<int> coordinate(dims_.size());
  int place = found->second;
  for (size_t d = dims_.size(); d-- > 0;) {
    coordinate[d] = place % dims_[d].size;
    place /= dims_[d].size;
  }
  return coordinate;
}

std::string Mesh::ToString() const {
  return absl::StrJoin(dims_, ", ", [](std::string* out, const Dim& dim) {
    absl::StrAppend(out, dim.name, "=", dim.size);
  });
}

}  // namespace weight_sync::refit
