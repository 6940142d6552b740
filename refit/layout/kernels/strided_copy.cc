// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/kernels/strided_copy.h"

#include <algorithm>

namespace weight_sync::refit {
namespace {

// A transpose of fewer rows or columns is faster an element at a time.
constexpr int64_t kLeastTransposed = 8;

constexpr int kNoDim = -1;

bool IsElement(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

StridedCopy StridedCopy::Plan(absl::Span<const CopyDim> dims, int64_t run, Conversion conversion) {
  const bool converted = conversion != Conversion::kNone;
  const int64_t src_element = !converted ? run : conversion == Conversion::kF32ToBF16 ? 4 : 2;
  const int64_t dst_element = !converted ? run : conversion == Conversion::kF32ToBF16 ? 2 : 4;
  // What lies one after another on either side.
  int in_src = kNoDim, in_dst = kNoDim;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    const CopyDim& dim = dims[static_cast<size_t>(i)];
    if (dim.size > 1 && dim.src_stride == src_element) in_src = i;
    if (dim.size > 1 && dim.dst_stride == dst_element) in_dst = i;
  }
  PlaneKind kind = PlaneKind::kElements;
  int row = kNoDim, column = kNoDim;
  if (converted && in_src != kNoDim && in_src == in_dst) {
    kind = PlaneKind::kRows;
    column = in_src;
  } else if (!converted && !IsElement(run)) {
    kind = PlaneKind::kRows;  // the run is its columns
  } else if (in_src != kNoDim && in_dst != kNoDim && in_src != in_dst) {
    row = in_src;
    column = in_dst;
    const int64_t rows = dims[static_cast<size_t>(row)].size;
    const int64_t columns = dims[static_cast<size_t>(column)].size;
    if (std::min(rows, columns) >= kLeastTransposed) {
      kind = PlaneKind::kTranspose;
    } else if (rows < columns) {
      std::swap(row, column);  // the long loop outside
    }
  }
  const bool run_is_columns = kind == PlaneKind::kRows && !converted;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (column == kNoDim && !run_is_columns && i != row) {
      column = i;
    } else if (row == kNoDim && i != column) {
      row = i;
    }
  }

  StridedCopy copy;
  const auto dim_or_one = [&dims](int i) {
    return i == kNoDim ? CopyDim{1, 0, 0} : dims[static_cast<size_t>(i)];
  };
  const CopyDim rows = dim_or_one(row);
  const CopyDim columns = run_is_columns ? CopyDim{run, 1, 1} : dim_or_one(column);
  copy.kind_ = kind;
  copy.conversion_ = conversion;
  copy.element_ = static_cast<int8_t>(run_is_columns ? 1 : dst_element);
  copy.kernel_ = KernelFor(kind, dst_element, conversion);
  copy.plane_ = {rows.size,          columns.size,    rows.src_stride,
                 columns.src_stride, rows.dst_stride, columns.dst_stride};
  copy.bytes_ = rows.size * columns.size * copy.element_;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (i == row || i == column) continue;
    copy.dims_[static_cast<size_t>(copy.outer_++)] = dims[static_cast<size_t>(i)];
    copy.bytes_ *= dims[static_cast<size_t>(i)].size;
  }
  // Cut where there are most pieces, tiles and lines kept whole.
  int64_t most = 0;
  for (int dim = kColumns; dim < copy.outer_; ++dim) {
    int64_t unit = 1;
    if (dim == kColumns || (dim == kRows && kind == PlaneKind::kTranspose)) {
      unit = kTileBytes / copy.element_;
    }
    const int64_t pieces = copy.Dim(dim).size / unit;
    if (pieces > most) {
      most = pieces;
      copy.cut_dim_ = static_cast<int8_t>(dim);
      copy.cut_unit_ = static_cast<int32_t>(unit);
    }
  }
  if (most == 0) {
    copy.cut_dim_ = kRows;
    copy.cut_unit_ = 1;
  }
  return copy;
}

CopyDim StridedCopy::Dim(int dim) const {
  if (dim == kColumns) return {plane_.columns, plane_.src_column, plane_.dst_column};
  if (dim == kRows) return {plane_.rows, plane_.src_row, plane_.dst_row};
  return dims_[static_cast<size_t>(dim)];
}

void StridedCopy::SetSize(int dim, int64_t size) {
  int64_t& place = dim == kColumns ? plane_.columns
                   : dim == kRows  ? plane_.rows
                                   : dims_[static_cast<size_t>(dim)].size;
  place = size;
}

void StridedCopy::Run(const Kernels& kernels, bool stream, const std::byte* src,
                      std::byte* dst) const {
  std::array<int64_t, Shape::kMaxRank> index = {};
  for (;;) {
    kernel_(kernels, plane_, stream, src, dst);
    int d = 0;
    for (; d < outer_; ++d) {
      const CopyDim& dim = dims_[static_cast<size_t>(d)];
      src += dim.src_stride;
      dst += dim.dst_stride;
      if (++index[static_cast<size_t>(d)] < dim.size) break;
      src -= dim.src_stride * dim.size;
      dst -= dim.dst_stride * dim.size;
      index[static_cast<size_t>(d)] = 0;
    }
    if (d == outer_) return;
  }
}

int64_t StridedCopy::Cut(int64_t byte) const {
  const int64_t size = Dim(cut_dim_).size;
  if (byte <= 0) return 0;
  if (byte >= bytes_) return size;
  const double share = static_cast<double>(byte) / static_cast<double>(bytes_);
  const int64_t units = static_cast<int64_t>(share * static_cast<double>(size)) / cut_unit_;
  return std::min(units * cut_unit_, size);
}

void StridedCopy::RunPart(const Kernels& kernels, bool stream, int64_t begin, int64_t end,
                          const std::byte* src, std::byte* dst) const {
  const int64_t first = Cut(begin), last = Cut(end);
  if (first >= last) return;
  StridedCopy part = *this;
  part.SetSize(cut_dim_, last - first);
  const CopyDim dim = Dim(cut_dim_);
  part.Run(kernels, stream, src + first * dim.src_stride, dst + first * dim.dst_stride);
}

}  // namespace weight_sync::refit
