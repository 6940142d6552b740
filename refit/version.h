// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The version of a policy's weights: it starts where the trainer says and advances by one at each
// optimizer step that is marked (WeightSynchronizer::MarkStale).

#ifndef WEIGHT_SYNC_REFIT_VERSION_H_
#define WEIGHT_SYNC_REFIT_VERSION_H_

#include <cstdint>

namespace weight_sync::refit {

using Version = int64_t;

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_VERSION_H_
