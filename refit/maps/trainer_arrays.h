// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A trainer's arrays under the names of its layout, matched with a WeightMap.

#ifndef WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_
#define WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct TrainerArray {
  std::string name;
  TensorView view;
};

// The views in the order of map.trainer(). InvalidArgument lists what is missing, what no HF tensor
// would be made of, what is there twice, and every shape that is not the map's (among them the
// shape-[0] placeholders that offloading optimizers leave). A tied head that the trainer holds beside
// its embedding must equal it.
absl::StatusOr<std::vector<TensorView>> MatchArrays(const WeightMap& map,
                                                    absl::Span<const TrainerArray> arrays);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_TRAINER_ARRAYS_H_
