// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A trainer's arrays under the names of its layout, matched with a WeightMap: as what they are
// (ArraySpec), or with the memory that holds them (TrainerArray). Free functions, thread-safe.
//
//   WS_ASSIGN_OR_RETURN(std::vector<TensorView> views, MatchArrays(map, {{"final_norm.w", view}, ...}));
//   views[0];                                        // of map.trainer()[0]

#ifndef WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_
#define WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

// What an array is, wherever its bytes are.
struct ArraySpec {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<int64_t> strides;  // in elements, one a dimension; empty: row-major
};

struct TrainerArray {
  std::string name;
  TensorView view;
};

// The arrays in the order of map.trainer(), as views without memory. InvalidArgument lists what is
// missing, what no HF tensor would be made of, what is there twice, and every shape that is not the
// map's (among them the shape-[0] placeholders that offloading optimizers leave); or names the array
// whose strides TensorView::Strided refuses, or the tied head that the trainer holds beside its
// embedding in another shape or dtype.
absl::StatusOr<std::vector<TensorView>> MatchSpecs(const WeightMap& map,
                                                   absl::Span<const ArraySpec> specs);

// The same of arrays in memory: those that have none are listed too. A tied head must equal its
// embedding, which reads both unless they are one.
absl::StatusOr<std::vector<TensorView>> MatchArrays(const WeightMap& map,
                                                    absl::Span<const TrainerArray> arrays);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_
