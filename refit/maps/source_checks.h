// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What every source over a WeightMap asks before it is made. Pure functions.
//
//   WS_RETURN_IF_ERROR(CheckConversions(map, dtypes));
//   WS_ASSIGN_OR_RETURN(std::vector<const NamedTensor*> passed, FindPassed(map, checkpoint));

#ifndef WEIGHT_SYNC_REFIT_MAPS_SOURCE_CHECKS_H_
#define WEIGHT_SYNC_REFIT_MAPS_SOURCE_CHECKS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

// InvalidArgument names a trainer tensor whose dtype (by the map's order) would change the values of
// an HF tensor.
absl::Status CheckConversions(const WeightMap& map, absl::Span<const DType> trainer_dtypes);

// By HF tensor: where the source checkpoint has what passes through, nullptr for the others.
// InvalidArgument lists those that it lacks or holds otherwise than the manifest says; `source` may
// be null where nothing passes through.
absl::StatusOr<std::vector<const NamedTensor*>> FindPassed(const WeightMap& map,
                                                           const Checkpoint* source);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_SOURCE_CHECKS_H_
