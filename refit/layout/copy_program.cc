// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/copy_program.h"

#include <cstring>

#include "absl/log/check.h"

namespace weight_sync::refit {
namespace {

// One dimension of equal runs: the shape of every innermost loop that is not a memcpy. A fixed size
// lets the compiler move an element as one load and one store.
template <size_t kBytes>
void CopyElementRow(const CopyDim& dim, const std::byte* src, std::byte* dst) {
  for (int64_t i = 0; i < dim.size; ++i) {
    std::memcpy(dst + i * dim.dst_stride, src + i * dim.src_stride, kBytes);
  }
}

void CopyRow(const CopyDim& dim, int64_t run, const std::byte* src, std::byte* dst) {
  switch (run) {
    case 1:
      return CopyElementRow<1>(dim, src, dst);
    case 2:
      return CopyElementRow<2>(dim, src, dst);
    case 4:
      return CopyElementRow<4>(dim, src, dst);
    case 8:
      return CopyElementRow<8>(dim, src, dst);
    default:
      for (int64_t i = 0; i < dim.size; ++i) {
        std::memcpy(dst + i * dim.dst_stride, src + i * dim.src_stride, static_cast<size_t>(run));
      }
  }
}

template <Conversion kConversion>
void ConvertRow(const CopyDim& dim, const std::byte* src, std::byte* dst) {
  for (int64_t i = 0; i < dim.size; ++i) {
    ConvertElement(kConversion, src + i * dim.src_stride, 0, dst + i * dim.dst_stride);
  }
}

}  // namespace

void CopyProgram::Append(int tensor, const TensorView& view, const Box& box, int64_t dst) {
  const int64_t element = StorageElementBytes(view.dtype());
  const bool sub_byte = IsSubByte(view.dtype());  // stored as one dimension of whole bytes
  std::array<CopyDim, Shape::kMaxRank> dims;
  int64_t src = 0, dst_stride = element;
  for (int dim = box.rank - 1; dim >= 0; --dim) {
    CopyDim& copy = dims[static_cast<size_t>(dim)];
    copy = {box.size[dim], 0, dst_stride};
    dst_stride *= box.size[dim];
    // The stride of a dimension of size 1 may be any number, also one that overflows in bytes.
    if (box.size[dim] == 1 && box.begin[dim] == 0) continue;
    copy.src_stride = sub_byte ? 1 : view.strides()[dim] * element;
    src += box.begin[dim] * copy.src_stride;
  }
  Append(tensor, src, absl::MakeConstSpan(dims.data(), box.rank), element, Conversion::kNone, dst);
}

void CopyProgram::Append(int tensor, int64_t src, absl::Span<const CopyDim> dims, int64_t element,
                         Conversion conversion, int64_t dst) {
  CHECK(!first_.empty()) << "StartBucket() first";
  Strided strided{conversion, conversion == Conversion::kNone ? element : 1, 0, {}};
  // Innermost first: grow the contiguous run while it continues, then collect what remains.
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    if (dim->size == 0) return;
    if (dim->size == 1) continue;
    if (conversion == Conversion::kNone && strided.outer == 0 && dim->src_stride == strided.run &&
        dim->dst_stride == strided.run) {
      strided.run *= dim->size;
      continue;
    }
    if (strided.outer > 0) {
      CopyDim& last = strided.dims[static_cast<size_t>(strided.outer) - 1];
      if (dim->src_stride == last.src_stride * last.size &&
          dim->dst_stride == last.dst_stride * last.size) {
        last.size *= dim->size;
        continue;
      }
    }
    strided.dims[static_cast<size_t>(strided.outer++)] = *dim;
  }
  if (strided.outer == 0 && conversion == Conversion::kNone) {
    if (copies_.size() > first_.back()) {
      Copy& last = copies_.back();
      if (last.tensor == tensor && last.strided < 0 && last.src + last.bytes == src &&
          last.dst + last.bytes == dst) {
        last.bytes += strided.run;
        return;
      }
    }
    copies_.push_back({src, dst, strided.run, tensor, -1});
    return;
  }
  if (strided.outer == 0) strided.dims[static_cast<size_t>(strided.outer++)] = {1, 0, 0};
  copies_.push_back({src, dst, 0, tensor, static_cast<int32_t>(strided_.size())});
  strided_.push_back(strided);
}

void CopyProgram::Run(int bucket, absl::Span<const std::byte* const> bases, std::byte* dst) const {
  const size_t b = static_cast<size_t>(bucket);
  const size_t end = b + 1 < first_.size() ? first_[b + 1] : copies_.size();
  for (size_t i = first_[b]; i < end; ++i) {
    const Copy& copy = copies_[i];
    const std::byte* src = bases[static_cast<size_t>(copy.tensor)] + copy.src;
    if (copy.strided < 0) {
      std::memcpy(dst + copy.dst, src, static_cast<size_t>(copy.bytes));
    } else {
      RunStrided(strided_[static_cast<size_t>(copy.strided)], src, dst + copy.dst);
    }
  }
}

void CopyProgram::RunStrided(const Strided& strided, const std::byte* src, std::byte* dst) {
  // dims[0] is the row; the others count in `index`.
  std::array<int64_t, Shape::kMaxRank> index = {};
  for (;;) {
    switch (strided.conversion) {
      case Conversion::kNone:
        CopyRow(strided.dims[0], strided.run, src, dst);
        break;
      case Conversion::kF32ToBF16:
        ConvertRow<Conversion::kF32ToBF16>(strided.dims[0], src, dst);
        break;
      case Conversion::kBF16ToF32:
        ConvertRow<Conversion::kBF16ToF32>(strided.dims[0], src, dst);
        break;
    }
    int d = 1;
    for (; d < strided.outer; ++d) {
      const CopyDim& dim = strided.dims[static_cast<size_t>(d)];
      src += dim.src_stride;
      dst += dim.dst_stride;
      if (++index[static_cast<size_t>(d)] < dim.size) break;
      src -= dim.src_stride * dim.size;
      dst -= dim.dst_stride * dim.size;
      index[static_cast<size_t>(d)] = 0;
    }
    if (d >= strided.outer) return;
  }
}

}  // namespace weight_sync::refit
