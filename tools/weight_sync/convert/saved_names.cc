// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/saved_names.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"

namespace weight_sync::convert {

using refit::TrainerArray;
using refit::WeightMap;

std::string PathOf(absl::string_view name) {
  const std::vector<absl::string_view> steps =
      absl::StrSplit(name, absl::ByAnyChar("./-[]'\""), absl::SkipEmpty());
  absl::Span<const absl::string_view> path = steps;
  while (path.size() > 1 && path.front() == "params") path.remove_prefix(1);
  if (path.size() > 1 && path.back() == "value") path.remove_suffix(1);
  return absl::StrJoin(path, ".");
}

absl::StatusOr<std::vector<TrainerArray>> FindSaved(const WeightMap& map,
                                                    const refit::Checkpoint& saved) {
  absl::flat_hash_map<std::string, const std::string*> name_of;  // by path
  for (const WeightMap::TrainerTensor& tensor : map.trainer()) {
    if (!name_of.emplace(PathOf(tensor.name), &tensor.name).second) {
      return absl::InternalError(
          absl::StrCat("another tensor of the layout has the path of '", tensor.name, "'"));
    }
  }
  std::vector<TrainerArray> arrays;
  absl::flat_hash_map<std::string, std::string> taken;  // a map's name: the file's
  for (const refit::NamedTensor& tensor : saved.tensors()) {
    const auto found = name_of.find(PathOf(tensor.name));
    const std::string& name = found == name_of.end() ? tensor.name : *found->second;
    const auto [first, added] = taken.emplace(name, tensor.name);
    if (!added) {
      return absl::InvalidArgumentError(absl::StrCat("'", first->second, "' and '", tensor.name,
                                                     "' are both the path of '", name, "'"));
    }
    arrays.push_back({name, tensor.tensor});
  }
  return arrays;
}

}  // namespace weight_sync::convert
