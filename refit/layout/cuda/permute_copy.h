// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PermuteCopy: one copy of a CopyProgram (copy_program.h) as a GPU does it, and what each thread of
// each block does of it. A header that host and device code share, so that all of it runs on a CPU
// too, thread by thread; permute_copy.cu is what is left: shared memory and the barrier.
//
// A bucket is one launch. Its copies are cut into tiles, a block each; block t finds the copy that
// tile t belongs to. A tile that is not transposed is read and written directly, in units as large
// as the addresses allow. One that is goes through shared memory: neighbouring threads read
// neighbouring elements of the source, and write neighbouring ones of the destination.

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_CUDA_PERMUTE_COPY_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_CUDA_PERMUTE_COPY_H_

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define WS_HOST_DEVICE __host__ __device__
#else
#define WS_HOST_DEVICE
#endif

namespace weight_sync::refit::cuda {

inline constexpr int kThreads = 256;      // of a block
inline constexpr int kTileBytes = 16384;  // of a tile that is not transposed, at most
inline constexpr int kMostOuter = 8;

enum class Change : int32_t { kNone, kF32ToBF16, kBF16ToF32 };

enum class Way : int32_t {
  kRuns,        // columns are bytes that lie one after another on both sides
  kElements,    // one by one, whatever the strides
  kTransposed,  // through shared memory
};

// In bytes where nothing else is said. A plain value, the same for host and device.
struct PermuteCopy {
  int64_t first_tile;  // tiles of the bucket's copies before
  int64_t src;         // from the array's first element
  int64_t dst;         // from the bucket's first byte
  int64_t rows;        // of the destination, in elements; as are columns
  int64_t columns;
  int64_t src_row;  // from one row to the next
  int64_t src_column;
  int64_t dst_row;
  int64_t dst_column;
  int64_t outer_size[kMostOuter];
  int64_t outer_src[kMostOuter];
  int64_t outer_dst[kMostOuter];
  int64_t tiles_across;
  int64_t tiles_down;
  int32_t outer;
  int32_t array;
  int32_t tile_rows;
  int32_t tile_columns;
  int32_t src_alignment;  // of all that is added to the array's address: a power of two up to 16
  int32_t dst_alignment;
  int32_t src_element;
  int32_t dst_element;
  Change change;
  Way way;
};

// What the kernel is launched with. Addresses are of the device's memory.
struct PermuteArguments {
  const PermuteCopy* copies;  // the bucket's
  int64_t count;
  const uint64_t* arrays;
  std::byte* dst;
};

// Rows, and columns, of a tile that is transposed: full memory transactions on both sides, for few
// enough bytes that several blocks share a multiprocessor.
WS_HOST_DEVICE constexpr int TransposedSide(int element) { return element <= 2 ? 64 : 32; }

// One element more in a row, so that a column's lie in different banks.
WS_HOST_DEVICE constexpr int SharedRow(int element) { return TransposedSide(element) + 1; }

inline constexpr int kSharedBytes = 8448;  // for elements of any size: 32 * 33 * 8

// A tile's place.
struct Tile {
  int64_t src;
  int64_t dst;
  int rows;
  int columns;
};

WS_HOST_DEVICE inline int SmallerOf(int64_t a, int64_t b) {
  return static_cast<int>(a < b ? a : b);
}

// The copy that tile `tile` of the bucket belongs to.
WS_HOST_DEVICE inline const PermuteCopy& CopyOfTile(const PermuteCopy* copies, int64_t count,
                                                    int64_t tile) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (copies[middle].first_tile <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return copies[low];
}

// `tile` counts from the copy's first.
WS_HOST_DEVICE inline Tile TileOf(const PermuteCopy& copy, int64_t tile) {
  const int64_t column = tile % copy.tiles_across * copy.tile_columns;
  tile /= copy.tiles_across;
  const int64_t row = tile % copy.tiles_down * copy.tile_rows;
  tile /= copy.tiles_down;
  Tile place{copy.src + row * copy.src_row + column * copy.src_column,
             copy.dst + row * copy.dst_row + column * copy.dst_column,
             SmallerOf(copy.tile_rows, copy.rows - row),
             SmallerOf(copy.tile_columns, copy.columns - column)};
  for (int i = 0; i < copy.outer; ++i) {
    const int64_t index = tile % copy.outer_size[i];
    tile /= copy.outer_size[i];
    place.src += index * copy.outer_src[i];
    place.dst += index * copy.outer_dst[i];
  }
  return place;
}

// The largest power of two up to `most` that divides the address.
WS_HOST_DEVICE inline int AlignmentOf(uint64_t address, int most) {
  while ((address & static_cast<uint64_t>(most - 1)) != 0) most /= 2;
  return most;
}

struct Unit16 {
  uint64_t low;
  uint64_t high;
};

// Unsigned values of memory; a byte at a time where the address is not theirs.
template <class Value>
WS_HOST_DEVICE Value Read(const std::byte* from, bool aligned) {
  if (aligned) return *reinterpret_cast<const Value*>(from);
  uint64_t value = 0;
  for (unsigned i = 0; i < sizeof(Value); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(from[i])) << (8 * i);
  }
  return static_cast<Value>(value);
}

// Memory that is written to. A test has another one, which counts.
struct DeviceMemory {
  template <class Value>
  WS_HOST_DEVICE void Write(std::byte* to, Value value, bool aligned) const {
    if (aligned) {
      *reinterpret_cast<Value*>(to) = value;
      return;
    }
    for (unsigned i = 0; i < sizeof(Value); ++i) {
      to[i] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }
  WS_HOST_DEVICE void Write(std::byte* to, Unit16 value, bool) const {
    *reinterpret_cast<Unit16*>(to) = value;
  }
};

// FloatToBFloat16 of convert.h.
WS_HOST_DEVICE inline uint16_t RoundToBFloat16(uint32_t bits) {
  const uint32_t upper = bits >> 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((upper & 0x7fu) != 0 ? upper : upper | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + (upper & 1u)) >> 16);
}

// An element of the destination, as `Value`, from the source's memory.
template <class Value>
WS_HOST_DEVICE Value ReadElement(Change change, const std::byte* from, bool aligned) {
  if (change == Change::kF32ToBF16) {
    return static_cast<Value>(RoundToBFloat16(Read<uint32_t>(from, aligned)));
  }
  if (change == Change::kBF16ToF32) {
    const uint64_t upper = Read<uint16_t>(from, aligned);
    return static_cast<Value>(upper << 16);
  }
  return Read<Value>(from, aligned);
}

// The threads of a block, in the first half of a transposed tile: its elements go into `shared`.
template <class Value>
WS_HOST_DEVICE void LoadTile(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                             int thread, Value* shared) {
  constexpr int kSide = TransposedSide(sizeof(Value)), kRow = SharedRow(sizeof(Value));
  const bool aligned =
      AlignmentOf(reinterpret_cast<uint64_t>(array), copy.src_alignment) >= copy.src_element;
  for (int i = thread; i < kSide * kSide; i += kThreads) {
    const int row = i % kSide, column = i / kSide;
    if (row >= tile.rows || column >= tile.columns) continue;
    shared[column * kRow + row] = ReadElement<Value>(
        copy.change, array + tile.src + row * copy.src_row + column * copy.src_column, aligned);
  }
}

// And in the second, once all are there.
template <class Value, class Memory>
WS_HOST_DEVICE void StoreTile(const PermuteCopy& copy, const Tile& tile, std::byte* dst, int thread,
                              const Value* shared, const Memory& memory) {
  constexpr int kSide = TransposedSide(sizeof(Value)), kRow = SharedRow(sizeof(Value));
  const bool aligned =
      AlignmentOf(reinterpret_cast<uint64_t>(dst), copy.dst_alignment) >= copy.dst_element;
  for (int i = thread; i < kSide * kSide; i += kThreads) {
    const int row = i / kSide, column = i % kSide;
    if (row >= tile.rows || column >= tile.columns) continue;
    memory.Write(dst + tile.dst + row * copy.dst_row + column * copy.dst_column,
                 shared[column * kRow + row], aligned);
  }
}

// The threads of a block whose tile is not transposed: elements ...
template <class Value, class Memory>
WS_HOST_DEVICE void CopyElements(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                                 std::byte* dst, int thread, const Memory& memory) {
  const bool src_aligned =
      AlignmentOf(reinterpret_cast<uint64_t>(array), copy.src_alignment) >= copy.src_element;
  const bool dst_aligned =
      AlignmentOf(reinterpret_cast<uint64_t>(dst), copy.dst_alignment) >= copy.dst_element;
  for (int i = thread; i < tile.rows * tile.columns; i += kThreads) {
    const int row = i / tile.columns, column = i % tile.columns;
    memory.Write(dst + tile.dst + row * copy.dst_row + column * copy.dst_column,
                 ReadElement<Value>(
                     copy.change, array + tile.src + row * copy.src_row + column * copy.src_column,
                     src_aligned),
                 dst_aligned);
  }
}

// ... or runs of bytes, whose columns are bytes.
template <class Unit, class Memory>
WS_HOST_DEVICE void CopyRuns(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                             std::byte* dst, int thread, const Memory& memory) {
  constexpr int64_t kUnit = sizeof(Unit);
  const int units = static_cast<int>(tile.columns / kUnit);
  for (int i = thread; i < tile.rows * units; i += kThreads) {
    const int row = i / units, unit = i % units;
    memory.Write(
        dst + tile.dst + row * copy.dst_row + unit * kUnit,
        *reinterpret_cast<const Unit*>(array + tile.src + row * copy.src_row + unit * kUnit),
        /*aligned=*/true);
  }
}

// All that a thread does for a tile that is not transposed.
template <class Memory>
WS_HOST_DEVICE void CopyDirectly(const PermuteCopy& copy, const Tile& tile, const std::byte* array,
                                 std::byte* dst, int thread, const Memory& memory) {
  if (copy.way == Way::kRuns) {
    // A tile's columns begin at multiples of 16.
    const int unit =
        AlignmentOf(static_cast<uint64_t>(copy.columns),
                    AlignmentOf(reinterpret_cast<uint64_t>(array),
                                AlignmentOf(reinterpret_cast<uint64_t>(dst),
                                            SmallerOf(copy.src_alignment, copy.dst_alignment))));
    switch (unit) {
      case 16:
        return CopyRuns<Unit16>(copy, tile, array, dst, thread, memory);
      case 8:
        return CopyRuns<uint64_t>(copy, tile, array, dst, thread, memory);
      case 4:
        return CopyRuns<uint32_t>(copy, tile, array, dst, thread, memory);
      case 2:
        return CopyRuns<uint16_t>(copy, tile, array, dst, thread, memory);
      default:
        return CopyRuns<uint8_t>(copy, tile, array, dst, thread, memory);
    }
  }
  switch (copy.dst_element) {
    case 1:
      return CopyElements<uint8_t>(copy, tile, array, dst, thread, memory);
    case 2:
      return CopyElements<uint16_t>(copy, tile, array, dst, thread, memory);
    case 4:
      return CopyElements<uint32_t>(copy, tile, array, dst, thread, memory);
    default:
      return CopyElements<uint64_t>(copy, tile, array, dst, thread, memory);
  }
}

}  // namespace weight_sync::refit::cuda

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_CUDA_PERMUTE_COPY_H_
