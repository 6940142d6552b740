// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels: the few loops over memory that all copies of a refit are made of, once for each level of
// instructions that a CPU may have. plane.h puts them together; nobody else calls them.
//
// Each is a pure function over memory that does not overlap, for addresses of any alignment unless
// it says otherwise. Thread-safe.
//
//   const Kernels& kernels = KernelsFor(BestCpuLevel());
//   kernels.f32_to_bf16(src, /*src_row=*/0, /*rows=*/1, /*count=*/1000, dst, /*dst_row=*/0);

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_KERNELS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace weight_sync::refit {

enum class CpuLevel : uint8_t {
  kPortable,  // what every CPU has
  kAvx2,
  kAvx512,  // F and BW
};

absl::string_view CpuLevelName(CpuLevel level);  // "portable", "AVX2", "AVX-512"

// Whether this CPU has the level, and the highest that it has.
bool HasCpuLevel(CpuLevel level);
CpuLevel BestCpuLevel();

inline constexpr int64_t kLineBytes = 64;

// A transpose goes tile by tile. A tile is so many bytes wide and as many elements high, on both
// sides: two cache lines of as many rows as the destination has elements in two lines. Measured on
// AVX-512 with //benchmarks:refit: with one line a fifth slower, and with four half as fast.
inline constexpr int64_t kTileBytes = 2 * kLineBytes;
inline constexpr int64_t kMaxTileRows = kTileBytes;  // of elements of one byte

struct Kernels {
  // `rows` rows of `count` (bytes, or elements that are converted), so many bytes apart.
  using Rows = void (*)(const std::byte* src, int64_t src_row, int64_t rows, int64_t count,
                        std::byte* dst, int64_t dst_row);
  Rows copy;
  Rows f32_to_bf16;
  Rows bf16_to_f32;
  // The same past the caches: fence() before anybody is told of it. Fastest for four rows or more
  // that lie whole lines apart.
  Rows copy_stream;
  Rows f32_to_bf16_stream;
  Rows bf16_to_f32_stream;

  // dst[r * dst_row + c * element] = tile[c * kTileBytes + r * element] for `rows` r and `columns`
  // c. May write as if `rows` were a multiple of 16 bytes and `columns` one of kLineBytes, and reads
  // as much of the tile.
  using Transpose = void (*)(const std::byte* tile, int64_t rows, int64_t columns, std::byte* dst,
                             int64_t dst_row);
  std::array<Transpose, 4> transpose;  // by the logarithm of the element's bytes
  // The same past the caches; dst begins at a whole line and dst_row is a multiple of lines.
  std::array<Transpose, 4> transpose_stream;

  void (*fence)();
};

// The CPU must have the level.
const Kernels& KernelsFor(CpuLevel level);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_KERNELS_KERNELS_H_
