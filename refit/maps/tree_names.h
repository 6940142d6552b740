// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TreeNames: the paths under which a trainer's program has its parameters, as names of a layout.
//
// A layout's name and a path are the same when their parts are, whatever stands between the parts
// (any of . / - [ ] ' " and blanks), and whether or not the last part is "value", as leaves of flax's
// trees have it. A path that is already a name stays itself. Immutable, so thread-safe.
//
//   const TreeNames names(map);
//   names.NameOf("layers/0/attn/q_proj/w");                                    // "layers.0.attn.q_proj.w"
//   names.NameOf("['layers'][0]['attn']['q_proj']['w'].value");                // the same

#ifndef WEIGHT_SYNC_REFIT_MAPS_TREE_NAMES_H_
#define WEIGHT_SYNC_REFIT_MAPS_TREE_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "refit/maps/weight_map.h"

namespace weight_sync::refit {

class TreeNames {
 public:
  // Of the map's trainer tensors, and the tied head that a trainer may hold beside them.
  explicit TreeNames(const WeightMap& map);

  // The path itself where it is that of no tensor: whoever looks for the tensor then says so.
  std::string NameOf(absl::string_view path) const;

 private:
  void Add(const std::string& name);

  // By the parts, joined. Empty: several names have these parts.
  absl::flat_hash_map<std::string, std::string> by_parts_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_TREE_NAMES_H_
