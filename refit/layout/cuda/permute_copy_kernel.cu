// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/cuda/permute_copy.h"

namespace weight_sync::refit::cuda {
namespace {

template <class Value>
__device__ void Transpose(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                          std::byte* dst, std::byte* shared) {
  auto* const values = reinterpret_cast<Value*>(shared);
  LoadTile(copy, tile, array, static_cast<int>(threadIdx.x), values);
  __syncthreads();
  StoreTile(copy, tile, dst, static_cast<int>(threadIdx.x), values, DeviceMemory());
}

}  // namespace

// A block of kThreads threads for each tile of the bucket.
extern "C" __global__ void __launch_bounds__(kThreads) PermuteCopyKernel(PermuteArguments args) {
  __shared__ alignas(16) std::byte shared[kSharedBytes];
  const PermuteCopy& copy = CopyOfTile(args.copies, args.count, blockIdx.x);
  const Tile tile = TileOf(copy, blockIdx.x - copy.first_tile);
  const auto* const array = reinterpret_cast<const std::byte*>(args.arrays[copy.array]);
  if (copy.way != Way::kTransposed) {
    CopyDirectly(copy, tile, array, args.dst, static_cast<int>(threadIdx.x), DeviceMemory());
    return;
  }
  switch (copy.dst_element) {
    case 1:
      return Transpose<uint8_t>(copy, tile, array, args.dst, shared);
    case 2:
      return Transpose<uint16_t>(copy, tile, array, args.dst, shared);
    case 4:
      return Transpose<uint32_t>(copy, tile, array, args.dst, shared);
    default:
      return Transpose<uint64_t>(copy, tile, array, args.dst, shared);
  }
}

}  // namespace weight_sync::refit::cuda
