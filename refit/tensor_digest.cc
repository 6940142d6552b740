// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor_digest.h"

#include <algorithm>
#include <vector>

namespace weight_sync::refit {
namespace {

void AddHeader(absl::string_view name, DType dtype, const Shape& shape, base::Digester& digester) {
  digester.AddSized(name);
  digester.AddSized(SafetensorsName(dtype));
  const int64_t rank = shape.rank();
  digester.Add(&rank, sizeof(rank));
  for (const int64_t dim : shape.dims()) digester.Add(&dim, sizeof(dim));
}

}  // namespace

base::Digest128 TensorDigest(absl::string_view name, const TensorView& tensor) {
  if (!tensor.is_contiguous()) {
    return TensorDigest(name, tensor.dtype(), tensor.shape(),
                        [&tensor](int64_t begin, int64_t end, std::byte* dst) {
                          CopyElements(tensor, begin, end, dst);
                        });
  }
  base::Digester digester;
  AddHeader(name, tensor.dtype(), tensor.shape(), digester);
  digester.Add(tensor.data(), static_cast<size_t>(tensor.num_bytes()));
  return digester.Finish();
}

bool SameValues(const TensorView& a, const TensorView& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return (a.data() == b.data() && a.strides() == b.strides()) ||
         TensorDigest("", a) == TensorDigest("", b);
}

base::Digest128 TensorDigest(
    absl::string_view name, DType dtype, const Shape& shape,
    absl::FunctionRef<void(int64_t begin, int64_t end, std::byte* dst)> read) {
  base::Digester digester;
  AddHeader(name, dtype, shape, digester);
  const int64_t elements = shape.num_elements();
  const int64_t element_bytes = StorageElementBytes(dtype);
  constexpr int64_t kChunk = 8192;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunk, elements) * element_bytes));
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, elements);
    read(begin, end, chunk.data());
    digester.Add(chunk.data(), static_cast<size_t>((end - begin) * element_bytes));
  }
  return digester.Finish();
}

}  // namespace weight_sync::refit
