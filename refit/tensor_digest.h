// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The digest of one named tensor: over its name, dtype, shape and logical bytes (row-major,
// whatever the strides), each with its length. Two ends that hold the same tensor agree on it
// however they store it; a swap of two equal-shaped tensors changes both. Thread-safe.
//
//   base::Digest128 digest = TensorDigest("model.norm.weight", view);

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DIGEST_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DIGEST_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

base::Digest128 TensorDigest(absl::string_view name, const TensorView& tensor);

// Whether two tensors have one dtype, one shape and the same bytes, whatever their strides.
bool SameValues(const TensorView& a, const TensorView& b);

// The same of a tensor that is nowhere whole: `read` writes the elements [begin, end), counted in
// row-major order, densely to `dst`. It is asked for ascending ranges without gaps. Not for the
// sub-byte types.
base::Digest128 TensorDigest(
    absl::string_view name, DType dtype, const Shape& shape,
    absl::FunctionRef<void(int64_t begin, int64_t end, std::byte* dst)> read);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DIGEST_H_
