// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What PermuteCopyKernel of permute_copy.cu does, on a CPU: every thread of a block up to the
// barrier, then every thread from there. For tests.
//
//   SimulateGrid({copies, count, arrays, dst}, tiles, DeviceMemory());

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_CUDA_SIMULATED_GRID_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_CUDA_SIMULATED_GRID_H_

#include <cstddef>
#include <cstdint>

#include "refit/layout/cuda/permute_copy.h"

namespace weight_sync::refit::cuda {

template <class Value, class Memory>
void SimulateTranspose(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                       std::byte* dst, const Memory& memory) {
  Value shared[kSharedBytes / sizeof(Value)];
  for (int thread = 0; thread < kThreads; ++thread) LoadTile(copy, tile, array, thread, shared);
  for (int thread = 0; thread < kThreads; ++thread) {
    StoreTile(copy, tile, dst, thread, shared, memory);
  }
}

template <class Memory>
void SimulateGrid(const PermuteArguments& args, int64_t tiles, const Memory& memory) {
  for (int64_t block = 0; block < tiles; ++block) {
    const PermuteCopy& copy = CopyOfTile(args.copies, args.count, block);
    const Tile tile = TileOf(copy, block - copy.first_tile);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers.
    const auto* const array = reinterpret_cast<const std::byte*>(args.arrays[copy.array]);
    if (copy.way != Way::kTransposed) {
      for (int thread = 0; thread < kThreads; ++thread) {
        CopyDirectly(copy, tile, array, args.dst, thread, memory);
      }
    } else if (copy.dst_element == 1) {
      SimulateTranspose<uint8_t>(copy, tile, array, args.dst, memory);
    } else if (copy.dst_element == 2) {
      SimulateTranspose<uint16_t>(copy, tile, array, args.dst, memory);
    } else if (copy.dst_element == 4) {
      SimulateTranspose<uint32_t>(copy, tile, array, args.dst, memory);
    } else {
      SimulateTranspose<uint64_t>(copy, tile, array, args.dst, memory);
    }
  }
}

}  // namespace weight_sync::refit::cuda

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_CUDA_SIMULATED_GRID_H_
