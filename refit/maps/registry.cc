// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/registry.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit {

absl::Status FamilyRegistry::Add(const Family* family) {
  if (family->model_types.empty() || family->layouts.empty() || family->layouts[0] != "hf") {
    return absl::InvalidArgumentError(absl::StrCat(
        "family '", family->name, "' needs a model type, and \"hf\" as its first layout"));
  }
  for (const std::string& type : family->model_types) {
    const auto found = by_model_type_.find(type);
    if (found != by_model_type_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("model type '", type, "' of family '",
                                                     family->name, "' is already that of '",
                                                     found->second->name, "'"));
    }
  }
  for (const std::string& type : family->model_types) by_model_type_[type] = family;
  return absl::OkStatus();
}

absl::StatusOr<const Family*> FamilyRegistry::Find(absl::string_view model_type) const {
  const auto found = by_model_type_.find(model_type);
  if (found != by_model_type_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [type, family] : by_model_type_) known.push_back(type);
  return absl::NotFoundError(absl::StrCat("no family for model type '", model_type,
                                          "'; known: ", absl::StrJoin(known, ", ")));
}

std::vector<const Family*> FamilyRegistry::Families() const {
  std::map<std::string, const Family*> by_name;
  for (const auto& [type, family] : by_model_type_) by_name[family->name] = family;
  std::vector<const Family*> families;
  for (const auto& [name, family] : by_name) families.push_back(family);
  return families;
}

}  // namespace weight_sync::refit
