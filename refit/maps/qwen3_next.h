// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next: gated delta-net (linear) attention layers with a full one in each block, routed experts
// and a shared one, and an MTP module that only the source checkpoint holds.

#ifndef WEIGHT_SYNC_REFIT_MAPS_QWEN3_NEXT_H_
#define WEIGHT_SYNC_REFIT_MAPS_QWEN3_NEXT_H_

#include "refit/maps/family.h"

namespace weight_sync::refit {

const Family& Qwen3NextFamily();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_QWEN3_NEXT_H_
