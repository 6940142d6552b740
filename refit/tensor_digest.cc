// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor_digest.h"

#include <algorithm>
#include <vector>

namespace weight_sync::refit {

base::Digest128 TensorDigest(absl::string_view name, const TensorView& tensor) {
  base::Digester digester;
  digester.AddSized(name);
  digester.AddSized(SafetensorsName(tensor.dtype()));
  const int64_t rank = tensor.shape().rank();
  digester.Add(&rank, sizeof(rank));
  for (const int64_t dim : tensor.shape().dims()) digester.Add(&dim, sizeof(dim));
  if (tensor.is_contiguous()) {
    digester.Add(tensor.data(), static_cast<size_t>(tensor.num_bytes()));
    return digester.Finish();
  }
  const int64_t elements = tensor.shape().num_elements();
  const int64_t element_bytes = StorageElementBytes(tensor.dtype());
  constexpr int64_t kChunk = 8192;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunk, elements) * element_bytes));
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, elements);
    CopyElements(tensor, begin, end, chunk.data());
    digester.Add(chunk.data(), static_cast<size_t>((end - begin) * element_bytes));
  }
  return digester.Finish();
}

}  // namespace weight_sync::refit
