// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How fast this machine copies memory, measured: the limit that a transfer is compared with.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_MEMORY_COPY_H_
#define WEIGHT_SYNC_TOOLS_DEMO_MEMORY_COPY_H_

#include <cstdint>

namespace weight_sync::demo {

// Bytes a second of memcpy on one thread, over a buffer of `bytes`: the best of five runs or more,
// a quarter of a second at least. Takes twice as much memory while it runs.
double MeasureMemoryCopy(int64_t bytes);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_MEMORY_COPY_H_
