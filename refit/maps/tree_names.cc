// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/tree_names.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weight_sync::refit {
namespace {

std::string PartsOf(absl::string_view path) {
  std::vector<absl::string_view> parts =
      absl::StrSplit(path, absl::ByAnyChar("./-[]'\" "), absl::SkipEmpty());
  if (!parts.empty() && parts.back() == "value") parts.pop_back();
  return absl::StrJoin(parts, "/");
}

}  // namespace

TreeNames::TreeNames(const WeightMap& map) {
  for (const WeightMap::TrainerTensor& tensor : map.trainer()) Add(tensor.name);
  if (!map.tied_head().empty()) Add(map.tied_head());
}

void TreeNames::Add(const std::string& name) {
  if (!names_.insert(name).second) return;
  const auto [found, fresh] = by_parts_.try_emplace(PartsOf(name), name);
  if (!fresh) found->second.clear();
}

std::string TreeNames::NameOf(absl::string_view path) const {
  if (names_.contains(path)) return std::string(path);
  const auto found = by_parts_.find(PartsOf(path));
  if (found == by_parts_.end() || found->second.empty()) return std::string(path);
  return found->second;
}

}  // namespace weight_sync::refit
