// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a trainer would allocate to hold a model: a map's trainer tensors with dtypes.
//
// A tensor has the type of the HF tensors that it is made of, and float32 where some of them are
// float32 and others bfloat16. With `float32_masters` what would be bfloat16 is float32.
//
//   WS_ASSIGN_OR_RETURN(auto specs, TrainerSpecs(map, DType::kBF16, /*float32_masters=*/false));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_TRAINER_SPECS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_TRAINER_SPECS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/weight_map.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::tools {

// In the order of map.trainer(). `unsent` is the type of tensors of which no HF tensor is made.
// Unimplemented where one tensor is made of other types than those.
absl::StatusOr<std::vector<refit::TensorSpec>> TrainerSpecs(const refit::WeightMap& map,
                                                            refit::DType unsent,
                                                            bool float32_masters);

// What LoadCheckpoint fills: the views under the specs' names, one each.
std::vector<refit::MutableTrainerArray> ArraysOf(absl::Span<const refit::TensorSpec> specs,
                                                 absl::Span<const refit::MutableTensorView> views);

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_TRAINER_SPECS_H_
