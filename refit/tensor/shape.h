// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Shape: the dimensions of a tensor, slowest varying first. A small value (rank <= 8, no heap).
//
// A Shape is valid by construction: no negative dimension, and an element count that fits int64_t.
// Rank 0 is a scalar (one element); a dimension of 0 makes a tensor of no elements.
//
// Example:
//
//   absl::StatusOr<Shape> shape = Shape::Create({151936, 1024});   // checked: for outside data
//   Shape literal = {2, 3};                                        // dies if invalid: for literals
//   absl::StatusOr<int64_t> bytes = ByteSize(DType::kBF16, *shape);
//   LOG(INFO) << shape->ToString();                                // "[151936, 1024]"
//
// Thread-safety: a value type, as an int is.

#ifndef WEIGHT_SYNC_REFIT_TENSOR_SHAPE_H_
#define WEIGHT_SYNC_REFIT_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>

#include "absl/log/absl_check.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  // A scalar.
  Shape() = default;

  // For tests and literals: dies where Create() would return an error.
  Shape(std::initializer_list<int64_t> dims);

  // InvalidArgument when the rank is over kMaxRank, a dimension is negative, or the product of the
  // dimensions, taken from the first to the last, leaves int64_t.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const {
    ABSL_DCHECK(dim >= 0 && dim < rank_);
    return dims_[dim];
  }
  absl::Span<const int64_t> dims() const { return absl::MakeConstSpan(dims_.data(), rank_); }

  // 1 for a scalar.
  int64_t num_elements() const { return num_elements_; }

  // "[2, 3]"; "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& os, const Shape& shape) {
    return os << shape.ToString();
  }
  template <typename Sink>
  friend void AbslStringify(Sink& sink, const Shape& shape) {
    sink.Append(shape.ToString());
  }
  template <typename H>
  friend H AbslHashValue(H h, const Shape& shape) {
    return H::combine(std::move(h), shape.dims());
  }

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  int rank_ = 0;
  int64_t num_elements_ = 1;
};

// Bytes of a dense tensor. InvalidArgument when they leave int64_t, or when a sub-byte type's
// elements do not fill whole bytes (3 elements of F4).
absl::StatusOr<int64_t> ByteSize(DType dtype, const Shape& shape);

// The tensor as whole addressable storage elements, the form in which boxes are cut and copied:
// `shape` itself, with elements of StorageElementBytes(), except for the sub-byte types, whose
// tensors are opaque bytes once they are cut: one dimension of ByteSize() elements of one byte.
// Dies where ByteSize() would return an error.
Shape StorageShape(DType dtype, const Shape& shape);

// Bytes of one storage element: the element's own, or 1 for the sub-byte types.
int64_t StorageElementBytes(DType dtype);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_SHAPE_H_
