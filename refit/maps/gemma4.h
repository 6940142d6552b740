// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The text model of Gemma 4: sliding and full attention with head sizes of their own, per-layer
// embeddings, layers that share K and V, keys that are also values, and the parallel experts of the
// MoE model. Vision and audio towers pass through from the source checkpoint.

#ifndef WEIGHT_SYNC_REFIT_MAPS_GEMMA4_H_
#define WEIGHT_SYNC_REFIT_MAPS_GEMMA4_H_

#include "refit/maps/family.h"

namespace weight_sync::refit {

const Family& Gemma4Family();

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_MAPS_GEMMA4_H_
