// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/tensor_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/log/absl_check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::refit {
namespace {

std::array<int64_t, Shape::kMaxRank> ContiguousStrides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides = {};
  // Without elements no stride is followed, and the product of the other dimensions may overflow.
  if (shape.num_elements() == 0) return strides;
  int64_t stride = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

bool StridesAreContiguous(const Shape& shape, absl::Span<const int64_t> strides) {
  if (shape.num_elements() == 0) return true;
  const std::array<int64_t, Shape::kMaxRank> wanted = ContiguousStrides(shape);
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] != 1 && strides[dim] != wanted[dim]) return false;
  }
  return true;
}

// True when the byte offsets of the first and the last element in every direction fit int64_t.
bool OffsetsFit(const Shape& shape, absl::Span<const int64_t> strides, int64_t element_bytes) {
  int64_t lowest = 0;
  int64_t highest = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    int64_t reach;
    if (__builtin_mul_overflow(strides[dim], shape[dim] - 1, &reach) ||
        __builtin_mul_overflow(reach, element_bytes, &reach)) {
      return false;
    }
    int64_t* end = reach < 0 ? &lowest : &highest;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  int64_t past_the_last;
  return !__builtin_add_overflow(highest, element_bytes, &past_the_last);
}

// Copies `count` elements that lie `stride` elements apart.
template <int64_t kBytes>
void CopyRun(const std::byte* src, int64_t stride, int64_t count, std::byte* dst) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * kBytes, src + i * stride * kBytes, kBytes);
  }
}

void CopyRun(const std::byte* src, int64_t stride, int64_t count, int64_t bytes, std::byte* dst) {
  if (stride == 1) {
    std::memcpy(dst, src, count * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return CopyRun<1>(src, stride, count, dst);
    case 2:
      return CopyRun<2>(src, stride, count, dst);
    case 4:
      return CopyRun<4>(src, stride, count, dst);
    default:
      ABSL_DCHECK_EQ(bytes, 8);
      return CopyRun<8>(src, stride, count, dst);
  }
}

}  // namespace

template <typename Byte>
BasicTensorView<Byte>::BasicTensorView(Byte* data, DType dtype, const Shape& shape)
    : data_(data), dtype_(dtype), shape_(shape), strides_(ContiguousStrides(shape)) {
  const absl::StatusOr<int64_t> bytes = ByteSize(dtype, shape);
  ABSL_CHECK_OK(bytes.status());
  num_bytes_ = *bytes;
}

template <typename Byte>
absl::StatusOr<BasicTensorView<Byte>> BasicTensorView<Byte>::Strided(
    Byte* data, DType dtype, const Shape& shape, absl::Span<const int64_t> strides) {
  if (strides.size() != static_cast<size_t>(shape.rank())) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", shape, " has ", shape.rank(),
                                                   " dimensions but there are ", strides.size(),
                                                   " strides"));
  }
  if (const absl::StatusOr<int64_t> bytes = ByteSize(dtype, shape); !bytes.ok()) {
    return bytes.status();
  }
  BasicTensorView view(data, dtype, shape);
  if (shape.num_elements() == 0) return view;
  if (IsSubByte(dtype) && !StridesAreContiguous(shape, strides)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a view of dtype ", dtype, " must be contiguous: its elements are smaller than a byte"));
  }
  if (!OffsetsFit(shape, strides, StorageElementBytes(dtype))) {
    return absl::InvalidArgumentError(absl::StrCat("the strides of a view of shape ", shape,
                                                   " reach farther than 64 bits can address"));
  }
  std::copy(strides.begin(), strides.end(), view.strides_.begin());
  return view;
}

template <typename Byte>
bool BasicTensorView<Byte>::is_contiguous() const {
  return StridesAreContiguous(shape_, strides());
}

template <typename Byte>
absl::StatusOr<BasicTensorView<Byte>> BasicTensorView<Byte>::Transposed(int a, int b) const {
  if (a < 0 || a >= shape_.rank() || b < 0 || b >= shape_.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimensions ", a, " and ", b, " of shape ", shape_, " cannot be exchanged"));
  }
  std::array<int64_t, Shape::kMaxRank> dims = {};
  std::copy(shape_.dims().begin(), shape_.dims().end(), dims.begin());
  std::array<int64_t, Shape::kMaxRank> strides = strides_;
  std::swap(dims[a], dims[b]);
  std::swap(strides[a], strides[b]);
  const size_t rank = static_cast<size_t>(shape_.rank());
  const absl::StatusOr<Shape> shape = Shape::Create(absl::MakeConstSpan(dims.data(), rank));
  if (!shape.ok()) return shape.status();
  return Strided(data_, dtype_, *shape, absl::MakeConstSpan(strides.data(), rank));
}

template <typename Byte>
absl::StatusOr<BasicTensorView<Byte>> BasicTensorView<Byte>::Sliced(int dim, int64_t begin,
                                                                    int64_t end,
                                                                    int64_t step) const {
  if (IsSubByte(dtype_)) {
    return absl::InvalidArgumentError(absl::StrCat("a view of dtype ", dtype_,
                                                   " cannot be sliced: its elements are smaller "
                                                   "than a byte"));
  }
  if (dim < 0 || dim >= shape_.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", shape_, " has no dimension ", dim));
  }
  const int64_t size = shape_[dim];
  const bool forward = step > 0 && 0 <= begin && begin <= end && end <= size;
  const bool backward = step < 0 && -1 <= end && end <= begin && begin < size;
  if (!forward && !backward) {
    return absl::InvalidArgumentError(absl::StrCat("slice ", begin, ":", end, ":", step,
                                                   " is outside of dimension ", dim, " of shape ",
                                                   shape_));
  }
  // How many steps start before `end`, without overflow for a huge step.
  const int64_t distance = forward ? end - begin : begin - end;
  const uint64_t stride = forward ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const int64_t count =
      distance == 0 ? 0 : 1 + static_cast<int64_t>(static_cast<uint64_t>(distance - 1) / stride);

  std::array<int64_t, Shape::kMaxRank> dims = {};
  std::copy(shape_.dims().begin(), shape_.dims().end(), dims.begin());
  dims[dim] = count;
  const size_t rank = static_cast<size_t>(shape_.rank());
  const absl::StatusOr<Shape> shape = Shape::Create(absl::MakeConstSpan(dims.data(), rank));
  if (!shape.ok()) return shape.status();
  if (shape->num_elements() == 0) return Contiguous(data_, dtype_, *shape);

  std::array<int64_t, Shape::kMaxRank> strides = strides_;
  // A single element is never stepped from, and its step may be any number.
  strides[dim] = count == 1 ? 1 : strides_[dim] * step;
  return Strided(data_ + begin * strides_[dim] * StorageElementBytes(dtype_), dtype_, *shape,
                 absl::MakeConstSpan(strides.data(), rank));
}

template class BasicTensorView<const std::byte>;
template class BasicTensorView<std::byte>;

void CopyElements(const TensorView& view, int64_t begin, int64_t end, std::byte* dst) {
  const int64_t bytes = StorageElementBytes(view.dtype());
  ABSL_CHECK(0 <= begin && begin <= end && end <= view.num_bytes() / bytes)
      << "elements " << begin << " to " << end << " of shape " << view.shape().ToString();
  if (begin == end) return;
  if (view.is_contiguous()) {
    std::memcpy(dst, view.data() + begin * bytes, (end - begin) * bytes);
    return;
  }
  // Not contiguous, so it has at least one dimension and elements of whole bytes.
  const Shape& shape = view.shape();
  const int last = shape.rank() - 1;
  std::array<int64_t, Shape::kMaxRank> index = {};
  int64_t rest = begin;
  for (int dim = last; dim >= 0; --dim) {
    index[dim] = rest % shape[dim];
    rest /= shape[dim];
  }
  while (begin < end) {
    int64_t offset = 0;
    for (int dim = 0; dim <= last; ++dim) offset += index[dim] * view.strides()[dim];
    const int64_t count = std::min(shape[last] - index[last], end - begin);
    CopyRun(view.data() + offset * bytes, view.strides()[last], count, bytes, dst);
    dst += count * bytes;
    begin += count;
    index[last] += count;
    for (int dim = last; dim > 0 && index[dim] == shape[dim]; --dim) {
      index[dim] = 0;
      ++index[dim - 1];
    }
  }
}

}  // namespace weight_sync::refit
