// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-MoE: Qwen3 with routed experts in most or all layers.

#ifndef WEIGHT_SYNC_REFIT_MAPS_QWEN3_MOE_H_
#define WEIGHT_SYNC_REFIT_MAPS_QWEN3_MOE_H_

#include "refit/maps/family.h"

namespace weight_sync::refit {

const Family& Qwen3MoeFamily();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_QWEN3_MOE_H_
