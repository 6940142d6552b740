// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/trainer_specs.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::tools {
namespace {

using refit::DType;
using refit::TensorSpec;
using refit::WeightMap;

bool IsFloat(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF32; }

}  // namespace

absl::StatusOr<std::vector<TensorSpec>> TrainerSpecs(const WeightMap& map, DType unsent,
                                                     bool float32_masters) {
  std::vector<std::optional<DType>> dtypes(map.trainer().size());
  for (int t = 0; t < map.hf().size(); ++t) {
    const DType hf = map.hf()[t].dtype;
    for (const WeightMap::MappedRegion& mapped : map.regions(t)) {
      std::optional<DType>& dtype = dtypes[static_cast<size_t>(mapped.trainer)];
      if (!dtype.has_value()) dtype = hf;
      if (*dtype == hf) continue;
      if (!IsFloat(*dtype) || !IsFloat(hf)) {
        return absl::UnimplementedError(
            absl::StrCat("'", map.trainer()[static_cast<size_t>(mapped.trainer)].name,
                         "' would be made of tensors of different types, among them '",
                         map.hf()[t].name, "' ", hf, " beside ", *dtype));
      }
      dtype = DType::kF32;
    }
  }
  std::vector<TensorSpec> specs;
  specs.reserve(dtypes.size());
  for (size_t i = 0; i < dtypes.size(); ++i) {
    DType dtype = dtypes[i].value_or(unsent);
    if (float32_masters && dtype == DType::kBF16) dtype = DType::kF32;
    specs.push_back({map.trainer()[i].name, map.trainer()[i].shape, dtype});
  }
  return specs;
}

std::vector<refit::MutableTrainerArray> ArraysOf(absl::Span<const TensorSpec> specs,
                                                 absl::Span<const refit::MutableTensorView> views) {
  std::vector<refit::MutableTrainerArray> arrays;
  arrays.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) arrays.push_back({specs[i].name, views[i]});
  return arrays;
}

}  // namespace weight_sync::tools
