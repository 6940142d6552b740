// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The loader: the other direction of a WeightMap. Fills a trainer's arrays from a checkpoint.
//
//   WS_RETURN_IF_ERROR(LoadCheckpoint(map, checkpoint, arrays));

#ifndef WEIGHT_SYNC_REFIT_MAPS_LOAD_CHECKPOINT_H_
#define WEIGHT_SYNC_REFIT_MAPS_LOAD_CHECKPOINT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/maps/weight_map.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct MutableTrainerArray {
  std::string name;
  MutableTensorView view;
};

// Writes every array of map.trainer(): contiguous ones, of the checkpoint's dtype or float32 for its
// bfloat16. Padding becomes zero. Arrays that are held and not sent are left as they are.
// `loaded`, if set, is called with the bytes of each array that is done.
//
// InvalidArgument, before anything is written, for arrays as MatchArrays, for a checkpoint that
// lacks a tensor of map.hf() or holds it in another shape, for arrays whose type would change values
// (also by rounding), and for a tied head that differs from its embedding.
absl::Status LoadCheckpoint(const WeightMap& map, const Checkpoint& checkpoint,
                            absl::Span<const MutableTrainerArray> arrays,
                            const std::function<void(int64_t bytes)>& loaded = {});

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_LOAD_CHECKPOINT_H_
