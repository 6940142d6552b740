// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FamilyRegistry: families by the model_type of config.json. A binary holds those that it names, so
// that a trainer of one family builds one; a family of your own is added the same way.
//
//   FamilyRegistry registry;
//   WS_RETURN_IF_ERROR(registry.Add(&Qwen3MoeFamily()));
//   WS_RETURN_IF_ERROR(registry.Add(&MyFamily()));
//   WS_ASSIGN_OR_RETURN(const Family* family, registry.Find(config.model_type));
//
// `//refit/maps:all_families` has AllFamilies(), a registry of every family of this library.
// Thread-safe once it is filled.

#ifndef WEIGHT_SYNC_REFIT_MAPS_REGISTRY_H_
#define WEIGHT_SYNC_REFIT_MAPS_REGISTRY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/maps/family.h"

namespace weight_sync::refit {

class FamilyRegistry {
 public:
  // Borrows the family for good. InvalidArgument for a family without a model type, without "hf" as
  // its first layout, or with a model type that another has.
  absl::Status Add(const Family* family);

  // NotFound lists the model types that are known.
  absl::StatusOr<const Family*> Find(absl::string_view model_type) const;

  // Each once, by name.
  std::vector<const Family*> Families() const;

 private:
  std::map<std::string, const Family*, std::less<>> by_model_type_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_REGISTRY_H_
