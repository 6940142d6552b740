// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TensorView: somebody else's tensor, seen through a data pointer, a DType, a Shape and strides.
// MutableTensorView is the same with writable bytes, and converts to TensorView.
//
// A view owns nothing: it is valid while the bytes under it are. Strides count elements, not bytes;
// they may be 0 (a broadcast) or negative (a reversal). `data()` is the element at index
// (0, ..., 0), so with negative strides there are elements below it. Sub-byte types are always
// contiguous. A view is a small value without heap memory: pass it by const reference or copy it.
//
// Example: the transpose of a 2 x 3 matrix, brought into row-major order.
//
//   float values[6] = {0, 1, 2, 3, 4, 5};
//   TensorView matrix = TensorView::Contiguous(
//       reinterpret_cast<const std::byte*>(values), DType::kF32, {2, 3});
//   TensorView transposed = *matrix.Transposed(0, 1);          // [3, 2], strides 1, 3
//   float dense[6];                                            // 0 3 1 4 2 5
//   CopyElements(transposed, 0, 6, reinterpret_cast<std::byte*>(dense));
//
// Thread-safety: a view is a value; who reads and writes the bytes is the owner's affair.

#ifndef WEIGHT_SYNC_REFIT_TENSOR_TENSOR_VIEW_H_
#define WEIGHT_SYNC_REFIT_TENSOR_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

// `Byte` is std::byte or const std::byte; use the aliases below.
template <typename Byte>
class BasicTensorView {
 public:
  // An empty view of no bytes: U8, shape [0], data() == nullptr.
  BasicTensorView() : BasicTensorView(nullptr, DType::kU8, Shape{0}) {}

  // A row-major tensor. Dies where ByteSize(dtype, shape) would return an error.
  static BasicTensorView Contiguous(Byte* data, DType dtype, const Shape& shape) {
    return BasicTensorView(data, dtype, shape);
  }

  // InvalidArgument when there are not shape.rank() strides, a byte offset of an element leaves
  // int64_t, or the type is sub-byte and the strides are not the contiguous ones.
  static absl::StatusOr<BasicTensorView> Strided(Byte* data, DType dtype, const Shape& shape,
                                                 absl::Span<const int64_t> strides);

  // A writable view is also a readable one.
  template <typename Other,
            typename = std::enable_if_t<std::is_const_v<Byte> && !std::is_const_v<Other> &&
                                        std::is_same_v<const Other, Byte>>>
  BasicTensorView(const BasicTensorView<Other>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data_),
        dtype_(other.dtype_),
        shape_(other.shape_),
        strides_(other.strides_),
        num_bytes_(other.num_bytes_) {}

  Byte* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // In elements, one for each dimension. 0 for every dimension of a tensor without elements.
  absl::Span<const int64_t> strides() const {
    return absl::MakeConstSpan(strides_.data(), shape_.rank());
  }

  // Bytes of the tensor's values, ByteSize(dtype(), shape()): not the span of memory it reaches.
  int64_t num_bytes() const { return num_bytes_; }

  // True when the elements lie in row-major order without gaps, so that [data(), data() +
  // num_bytes()) is the tensor. Strides of dimensions of size 1 do not matter; a tensor without
  // elements is contiguous.
  bool is_contiguous() const;

  // The view with two dimensions exchanged. InvalidArgument for a dimension that is not there or
  // a sub-byte type.
  absl::StatusOr<BasicTensorView> Transposed(int a, int b) const;

  // The elements begin, begin + step, ... of dimension `dim`, stopping before `end`. A positive
  // step needs 0 <= begin <= end <= size; a negative one -1 <= end <= begin < size (so end == -1
  // reaches index 0). InvalidArgument otherwise, or for a sub-byte type.
  absl::StatusOr<BasicTensorView> Sliced(int dim, int64_t begin, int64_t end,
                                         int64_t step = 1) const;

 private:
  template <typename Other>
  friend class BasicTensorView;

  BasicTensorView(Byte* data, DType dtype, const Shape& shape);

  Byte* data_;
  DType dtype_;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_ = {};
  int64_t num_bytes_ = 0;
};

extern template class BasicTensorView<const std::byte>;
extern template class BasicTensorView<std::byte>;

using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

// Writes the storage elements [begin, end) of `view`, counted in row-major order of
// StorageShape(view.dtype(), view.shape()), densely to `dst`, which must not overlap the view.
// The plain and obvious way, for callers to whom clarity matters more than speed. Dies when the
// range is not 0 <= begin <= end <= StorageShape().num_elements().
void CopyElements(const TensorView& view, int64_t begin, int64_t end, std::byte* dst);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_TENSOR_VIEW_H_
