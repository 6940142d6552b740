// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/shape.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weight_sync::refit {
namespace {

std::string Bracketed(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

}  // namespace

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", Bracketed(dims), " has ", dims.size(),
                                                   " dimensions; at most ", kMaxRank,
                                                   " are supported"));
  }
  Shape shape;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", Bracketed(dims), " has the negative dimension ", dim));
    }
    if (__builtin_mul_overflow(shape.num_elements_, dim, &shape.num_elements_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", Bracketed(dims), " has more elements than 64 bits can count"));
    }
    shape.dims_[shape.rank_++] = dim;
  }
  return shape;
}

Shape::Shape(std::initializer_list<int64_t> dims) {
  absl::StatusOr<Shape> shape = Create(absl::MakeConstSpan(dims.begin(), dims.size()));
  ABSL_CHECK_OK(shape.status());
  *this = *shape;
}

std::string Shape::ToString() const { return Bracketed(dims()); }

absl::StatusOr<int64_t> ByteSize(DType dtype, const Shape& shape) {
  int64_t bits;
  if (__builtin_mul_overflow(shape.num_elements(), int64_t{DTypeBits(dtype)}, &bits)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of dtype ", dtype, " and shape ", shape, " has too many bytes"));
  }
  if (bits % 8 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of dtype ", dtype, " (",
                                                   DTypeBits(dtype), " bits an element) and shape ",
                                                   shape, " does not fill whole bytes"));
  }
  return bits / 8;
}

Shape StorageShape(DType dtype, const Shape& shape) {
  if (!IsSubByte(dtype)) return shape;
  const absl::StatusOr<int64_t> bytes = ByteSize(dtype, shape);
  ABSL_CHECK_OK(bytes.status());
  return Shape{*bytes};
}

int64_t StorageElementBytes(DType dtype) { return IsSubByte(dtype) ? 1 : DTypeBits(dtype) / 8; }

}  // namespace weight_sync::refit
