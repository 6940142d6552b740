// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/source_checks.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/differences.h"
#include "refit/layout/convert.h"

namespace weight_sync::refit {

absl::Status CheckConversions(const WeightMap& map, absl::Span<const DType> trainer_dtypes) {
  for (int t = 0; t < map.hf().size(); ++t) {
    for (const WeightMap::MappedRegion& mapped : map.regions(t)) {
      const size_t trainer = static_cast<size_t>(mapped.trainer);
      const auto conversion = ConversionBetween(trainer_dtypes[trainer], map.hf()[t].dtype);
      if (conversion.ok()) continue;
      return base::Prefixed(
          absl::StrCat("'", map.trainer()[trainer].name, "' for '", map.hf()[t].name, "'"),
          conversion.status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<const NamedTensor*>> FindPassed(const WeightMap& map,
                                                           const Checkpoint* source) {
  Differences absent("that pass through are not in the source checkpoint as the manifest says");
  std::vector<const NamedTensor*> passed(static_cast<size_t>(map.hf().size()));
  for (int t = 0; t < map.hf().size(); ++t) {
    if (!map.passes_through(t)) continue;
    const TensorSpec& tensor = map.hf()[t];
    const NamedTensor* const held = source == nullptr ? nullptr : source->Find(tensor.name);
    if (held == nullptr || held->tensor.shape() != tensor.shape ||
        held->tensor.dtype() != tensor.dtype) {
      absent.Add(tensor.name);
    } else {
      passed[static_cast<size_t>(t)] = held;
    }
  }
  if (!absent.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("HF tensors: ", absent.ToString()));
  }
  return passed;
}

}  // namespace weight_sync::refit
