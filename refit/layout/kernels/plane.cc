// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/kernels/plane.h"

#include <algorithm>

#include "absl/log/check.h"

namespace weight_sync::refit {
namespace {

// Rows of the destination that a transpose goes through before it comes back for the next columns.
// Each is in a page of its own, and processors remember the places of one or two thousand.
constexpr int64_t kRowBlock = 1024;

// Shorter runs are not worth the lines at their ends.
constexpr int64_t kLeastStreamed = 256;

// A long run is streamed as several at once, of a page each.
constexpr int64_t kPage = 4096;

// A plane whose source rows are shorter has its next ones asked for early: no processor guesses
// them.
constexpr int64_t kShortRow = 512;

// How rows are copied, or converted, in elements of what sizes.
template <Conversion kConversion>
struct RowsOf {
  static constexpr bool kNarrow = kConversion == Conversion::kF32ToBF16;
  static constexpr bool kWide = kConversion == Conversion::kBF16ToF32;
  // Bytes of an element; without conversion rows are counted in bytes.
  static constexpr int64_t kSrc = kNarrow ? 4 : kWide ? 2 : 1;
  static constexpr int64_t kDst = kNarrow ? 2 : kWide ? 4 : 1;

  static Kernels::Rows Cached(const Kernels& kernels) {
    return kNarrow ? kernels.f32_to_bf16 : kWide ? kernels.bf16_to_f32 : kernels.copy;
  }
  static Kernels::Rows Streamed(const Kernels& kernels) {
    return kNarrow ? kernels.f32_to_bf16_stream
           : kWide ? kernels.bf16_to_f32_stream
                   : kernels.copy_stream;
  }
};

template <Conversion kConversion>
void CopyRows(const Kernels& kernels, const Plane& plane, bool stream, const std::byte* src,
              std::byte* dst) {
  constexpr int64_t kSrc = RowsOf<kConversion>::kSrc, kDst = RowsOf<kConversion>::kDst;
  const int64_t count = plane.columns * plane.dst_column / kDst;
  if (!stream || count * kDst < kLeastStreamed) {
    RowsOf<kConversion>::Cached(kernels)(src, plane.src_row, plane.rows, count, dst, plane.dst_row);
    return;
  }
  const Kernels::Rows rows = RowsOf<kConversion>::Streamed(kernels);
  constexpr int64_t kStep = kPage / kDst;
  if (count < 8 * kStep) {
    rows(src, plane.src_row, plane.rows, count, dst, plane.dst_row);
    return;
  }
  for (int64_t r = 0; r < plane.rows; ++r) {
    const std::byte* const from = src + r * plane.src_row;
    std::byte* const to = dst + r * plane.dst_row;
    // Up to a whole line, then as many pages as there are, then the rest.
    const int64_t first = -reinterpret_cast<intptr_t>(to) & (kLineBytes - 1);
    const int64_t head = (first + kDst - 1) / kDst;
    const int64_t pages = (count - head) / (4 * kStep) * 4;
    rows(from, 0, 1, head, to, 0);
    rows(from + head * kSrc, kStep * kSrc, pages, kStep, to + head * kDst, kPage);
    const int64_t done = head + pages * kStep;
    rows(from + done * kSrc, 0, 1, count - done, to + done * kDst, 0);
  }
}

template <int64_t kElement>
constexpr size_t Logarithm() {
  return kElement == 1 ? 0 : kElement == 2 ? 1 : kElement == 4 ? 2 : 3;
}

// A part of a plane small enough to be turned in the nearest cache. Its elements are fetched, and
// converted, into `in`, so that each line of the source is asked for once.
template <int64_t kElement>
class Tile {
 public:
  static constexpr int64_t kRows = kTileBytes / kElement;  // and columns

  Tile(const Kernels& kernels, bool stream, int64_t dst_row)
      : kernels_(kernels), stream_(stream), dst_row_(dst_row) {}

  std::byte* in() { return in_; }

  // Whole lines go to `dst` from the registers, the ragged rest by way of `out_`.
  void Emit(int64_t rows, int64_t columns, std::byte* dst) {
    constexpr int64_t kLane = 16 / kElement, kLine = kLineBytes / kElement;
    int64_t whole_rows = rows / kLane * kLane, whole_columns = columns / kLine * kLine;
    if (stream_ && reinterpret_cast<uintptr_t>(dst) % kLineBytes != 0) whole_columns = 0;
    if (whole_columns == 0) whole_rows = 0;
    if (whole_rows > 0) {
      const auto& transpose = stream_ ? kernels_.transpose_stream : kernels_.transpose;
      transpose[Logarithm<kElement>()](in_, whole_rows, whole_columns, dst, dst_row_);
    }
    if (whole_columns < columns) {
      EmitRest(in_ + whole_columns * kTileBytes, rows, columns - whole_columns,
               dst + whole_columns * kElement);
    }
    if (whole_rows < rows && whole_columns > 0) {
      EmitRest(in_ + whole_rows * kElement, rows - whole_rows, whole_columns,
               dst + whole_rows * dst_row_);
    }
  }

 private:
  void EmitRest(const std::byte* in, int64_t rows, int64_t columns, std::byte* dst) {
    kernels_.transpose[Logarithm<kElement>()](in, rows, columns, out_, kTileBytes);
    (stream_ ? kernels_.copy_stream : kernels_.copy)(out_, kTileBytes, rows, columns * kElement,
                                                     dst, dst_row_);
  }

  const Kernels& kernels_;
  const bool stream_;
  const int64_t dst_row_;
  alignas(kLineBytes) std::byte in_[kRows * kTileBytes];
  alignas(kLineBytes) std::byte out_[kRows * kTileBytes];
};

// How many elements there are before the next multiple of `lines` bytes, if they end there.
template <int64_t kElement>
int64_t ElementsBefore(int64_t lines, const std::byte* memory) {
  const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory)) & (lines - 1);
  return past % kElement == 0 ? (lines - past) % lines / kElement : 0;
}

// Asks for so many rows of the source.
void Prefetch(const std::byte* src, int64_t src_row, int64_t rows, int64_t bytes) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < bytes; i += kLineBytes) {
      __builtin_prefetch(src + r * src_row + i, /*rw=*/0, /*locality=*/2);
    }
  }
}

template <Conversion kConversion, int64_t kElement>
void Transpose(const Kernels& kernels, const Plane& plane, bool stream, const std::byte* src,
               std::byte* dst) {
  constexpr int64_t kTile = Tile<kElement>::kRows;
  constexpr int64_t kSrc = kConversion == Conversion::kNone ? kElement : RowsOf<kConversion>::kSrc;
  const Kernels::Rows fetch = RowsOf<kConversion>::Cached(kernels);
  stream =
      stream && plane.dst_row % kLineBytes == 0 && reinterpret_cast<uintptr_t>(dst) % kElement == 0;
  // Where both sides' rows are whole lines apart, tiles begin at whole lines, but for the first ones.
  const int64_t first_columns = stream ? ElementsBefore<kElement>(kTileBytes, dst) : 0;
  const int64_t first_rows =
      plane.src_column % kLineBytes == 0 ? ElementsBefore<kSrc>(kTile * kSrc, src) : 0;
  Tile<kElement> tile(kernels, stream, plane.dst_row);
  for (int64_t block = 0, end; block < plane.rows; block = end) {
    end = block + kRowBlock;
    if (block == 0 && first_rows > 0) end += first_rows - kTile;  // so that the others are aligned
    end = std::min(end, plane.rows);
    const bool ask_early = (end - block) * kSrc <= kShortRow;
    for (int64_t c = 0, columns; c < plane.columns; c += columns) {
      columns = std::min(c == 0 && first_columns > 0 ? first_columns : kTile, plane.columns - c);
      for (int64_t r = block, rows; r < end; r += rows) {
        rows = std::min(r == 0 && first_rows > 0 ? first_rows : kTile, end - r);
        const std::byte* const from = src + c * plane.src_column + r * kSrc;
        if (ask_early) {
          Prefetch(from + columns * plane.src_column, plane.src_column,
                   std::min(columns, plane.columns - c - columns), rows * kSrc);
        }
        fetch(from, plane.src_column, columns,
              kConversion == Conversion::kNone ? rows * kElement : rows, tile.in(), kTileBytes);
        tile.Emit(rows, columns, dst + r * plane.dst_row + c * kElement);
      }
    }
  }
}

// A fixed size lets the compiler move an element as one load and one store.
template <Conversion kConversion, int64_t kElement>
void Elements(const Kernels&, const Plane& plane, bool, const std::byte* src, std::byte* dst) {
  for (int64_t r = 0; r < plane.rows; ++r) {
    for (int64_t c = 0; c < plane.columns; ++c) {
      ConvertElement(kConversion, src + r * plane.src_row + c * plane.src_column, kElement,
                     dst + r * plane.dst_row + c * plane.dst_column);
    }
  }
}

template <int64_t kElement>
PlaneKernel Unconverted(PlaneKind kind) {
  return kind == PlaneKind::kTranspose ? Transpose<Conversion::kNone, kElement>
                                       : Elements<Conversion::kNone, kElement>;
}

template <Conversion kConversion, int64_t kElement>
PlaneKernel Converted(PlaneKind kind) {
  return kind == PlaneKind::kRows        ? CopyRows<kConversion>
         : kind == PlaneKind::kTranspose ? Transpose<kConversion, kElement>
                                         : Elements<kConversion, kElement>;
}

}  // namespace

PlaneKernel KernelFor(PlaneKind kind, int64_t element, Conversion conversion) {
  if (conversion == Conversion::kF32ToBF16) return Converted<Conversion::kF32ToBF16, 2>(kind);
  if (conversion == Conversion::kBF16ToF32) return Converted<Conversion::kBF16ToF32, 4>(kind);
  if (kind == PlaneKind::kRows) return CopyRows<Conversion::kNone>;
  switch (element) {
    case 1:
      return Unconverted<1>(kind);
    case 2:
      return Unconverted<2>(kind);
    case 4:
      return Unconverted<4>(kind);
    default:
      CHECK_EQ(element, 8);
      return Unconverted<8>(kind);
  }
}

}  // namespace weight_sync::refit
