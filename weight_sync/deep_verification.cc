// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/deep_verification.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace weight_sync {

absl::Status CompareTable(const refit::RefitSource& source, absl::Span<const NamedDigest> table) {
  absl::flat_hash_map<absl::string_view, base::Digest128> engine;
  std::vector<std::string> wrong;
  for (const NamedDigest& entry : table) {
    if (!engine.emplace(entry.name, entry.digest).second) {
      wrong.push_back(absl::StrCat(entry.name, " (twice in the engine's table)"));
    }
  }
  for (int t = 0; t < source.info().size(); ++t) {
    const std::string& name = source.info()[t].name;
    const auto found = engine.find(name);
    if (found == engine.end()) {
      wrong.push_back(absl::StrCat(name, " (not in the engine's table)"));
      continue;
    }
    const absl::StatusOr<base::Digest128> expected = source.ReferenceDigest(t);
    if (!expected.ok()) {
      return base::Prefixed(absl::StrCat("deep verification of '", name, "'"), expected.status());
    }
    if (found->second != *expected) wrong.push_back(name);
    engine.erase(found);
  }
  for (const auto& [name, digest] : engine) wrong.push_back(absl::StrCat(name, " (never sent)"));
  if (wrong.empty()) return absl::OkStatus();
  const size_t count = wrong.size();
  constexpr size_t kShown = 5;
  if (count > kShown) wrong.resize(kShown);
  return absl::DataLossError(
      absl::StrCat("deep verification: ", count, " of ", source.info().size(),
                   " tensors differ between trainer and engine: ", absl::StrJoin(wrong, ", "),
                   count > kShown ? ", ..." : ""));
}

}  // namespace weight_sync
