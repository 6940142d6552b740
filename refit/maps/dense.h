// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The dense decoders: Llama, Qwen2 and Qwen3; tied or not, with or without biases.

#ifndef WEIGHT_SYNC_REFIT_MAPS_DENSE_H_
#define WEIGHT_SYNC_REFIT_MAPS_DENSE_H_

#include "refit/maps/family.h"

namespace weight_sync::refit {

const Family& DenseFamily();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_DENSE_H_
