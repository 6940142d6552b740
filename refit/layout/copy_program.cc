// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/copy_program.h"

#include <cstring>

#include "absl/log/check.h"

namespace weight_sync::refit {
namespace {

// One dimension of equal elements: the shape of every innermost loop that is not a memcpy. A fixed
// size lets the compiler move an element as one load and one store.
template <size_t kBytes>
void CopyElementRow(const std::byte* src, int64_t stride, int64_t count, std::byte* dst) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * kBytes, src + i * stride, kBytes);
}

void CopyRow(const std::byte* src, int64_t stride, int64_t count, int64_t run, std::byte* dst) {
  switch (run) {
    case 1:
      return CopyElementRow<1>(src, stride, count, dst);
    case 2:
      return CopyElementRow<2>(src, stride, count, dst);
    case 4:
      return CopyElementRow<4>(src, stride, count, dst);
    case 8:
      return CopyElementRow<8>(src, stride, count, dst);
    default:
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(dst + i * run, src + i * stride, static_cast<size_t>(run));
      }
  }
}

}  // namespace

void CopyProgram::Append(int tensor, const TensorView& view, const Box& box, int64_t dst) {
  CHECK(!first_.empty()) << "StartBucket() first";
  const int64_t element = StorageElementBytes(view.dtype());
  const bool sub_byte = IsSubByte(view.dtype());  // stored as one dimension of whole bytes
  const auto stride_of = [&](int dim) { return sub_byte ? 1 : view.strides()[dim] * element; };

  Copy copy{0, dst, box.num_elements() * element, tensor, -1};
  if (copy.bytes == 0) return;
  Strided strided{element, 0, {}, {}};
  for (int dim = 0; dim < box.rank; ++dim) {
    // The stride of a dimension of size 1 may be any number, also one that overflows in bytes.
    if (box.begin[dim] != 0) copy.src += box.begin[dim] * stride_of(dim);
  }
  // Innermost first: grow the contiguous run while it continues, then collect what remains.
  int dim = box.rank - 1;
  for (; dim >= 0; --dim) {
    if (box.size[dim] == 1) continue;
    if (stride_of(dim) != strided.run) break;
    strided.run *= box.size[dim];
  }
  for (; dim >= 0; --dim) {
    if (box.size[dim] == 1) continue;
    const int last = strided.outer - 1;
    if (last >= 0 && stride_of(dim) == strided.stride[last] * strided.size[last]) {
      strided.size[last] *= box.size[dim];
      continue;
    }
    strided.size[strided.outer] = box.size[dim];
    strided.stride[strided.outer] = stride_of(dim);
    ++strided.outer;
  }
  if (strided.outer > 0) {
    copy.strided = static_cast<int32_t>(strided_.size());
    strided_.push_back(strided);
  } else if (copies_.size() > first_.back()) {
    Copy& last = copies_.back();
    if (last.tensor == tensor && last.strided < 0 && last.src + last.bytes == copy.src &&
        last.dst + last.bytes == copy.dst) {
      last.bytes += copy.bytes;
      return;
    }
  }
  copies_.push_back(copy);
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
  // strided.size[0] is the innermost of the dimensions that are left; the others count in `index`.
  std::array<int64_t, Shape::kMaxRank> index = {};
  for (;;) {
    CopyRow(src, strided.stride[0], strided.size[0], strided.run, dst);
    dst += strided.size[0] * strided.run;
    int dim = 1;
    for (; dim < strided.outer; ++dim) {
      src += strided.stride[dim];
      if (++index[dim] < strided.size[dim]) break;
      src -= strided.stride[dim] * strided.size[dim];
      index[dim] = 0;
    }
    if (dim >= strided.outer) return;
  }
}

}  // namespace weight_sync::refit
