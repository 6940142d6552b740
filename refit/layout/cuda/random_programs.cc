// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/cuda/random_programs.h"

#include <algorithm>
#include <array>

#include "absl/types/span.h"

namespace weight_sync::refit::cuda {

std::vector<const std::byte*> RandomProgram::bases() const {
  std::vector<const std::byte*> bases;
  for (size_t i = 0; i < arrays.size(); ++i) bases.push_back(arrays[i].data() + first[i]);
  return bases;
}

RandomProgram MakeRandomProgram(std::mt19937& rng) {
  const auto below = [&rng](int64_t end) {
    return static_cast<int64_t>(rng() % static_cast<uint64_t>(end));
  };
  RandomProgram random;
  const int64_t buckets = 1 + below(3);
  for (int64_t b = 0; b < buckets; ++b) {
    random.program.StartBucket();
    int64_t end = 0;  // of the bucket so far
    for (int64_t copies = below(8); copies > 0; --copies) {
      const auto conversion = static_cast<Conversion>(below(5) % 3);
      const bool narrow = conversion == Conversion::kF32ToBF16;
      const bool wide = conversion == Conversion::kBF16ToF32;
      const int64_t element = int64_t{1} << below(4);
      const int64_t src_element = narrow ? 4 : wide ? 2 : element;
      const int64_t dst_element = narrow ? 2 : wide ? 4 : element;
      // Slowest first in the destination.
      std::array<CopyDim, 4> dims;
      const auto rank = static_cast<size_t>(below(5));
      int64_t elements = 1;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t most = std::clamp<int64_t>(40'000 / elements, 1, 200);
        dims[i].size = below(3) == 0 ? 1 + below(std::min<int64_t>(most, 5)) : 1 + below(most);
        elements *= dims[i].size;
      }
      int64_t stride = dst_element;
      for (size_t i = rank; i-- > 0;) {
        dims[i].dst_stride = stride;
        stride = stride * dims[i].size + (below(4) == 0 ? below(9) * dst_element : 0);
      }
      const int64_t dst_bytes = stride;
      std::array<size_t, 4> order = {0, 1, 2, 3};
      if (below(4) != 0) std::shuffle(order.begin(), order.begin() + rank, rng);
      stride = src_element;
      int64_t lowest = 0, highest = 0;
      for (size_t i = rank; i-- > 0;) {
        CopyDim& dim = dims[order[i]];
        const int64_t kind = below(10);
        dim.src_stride = kind == 0 ? 0 : kind == 1 ? -stride : stride;
        (dim.src_stride < 0 ? lowest : highest) += (dim.size - 1) * dim.src_stride;
        stride = stride * dim.size + (below(4) == 0 ? below(9) * src_element : 0);
      }
      const int64_t src_place = below(6) == 0 ? 1 : below(3) * src_element;
      std::vector<std::byte> array(static_cast<size_t>(highest - lowest + src_element + src_place));
      for (std::byte& byte : array) byte = static_cast<std::byte>(rng());
      const int64_t align = below(6) == 0 ? 1 : 64;
      const int64_t dst = (end + align - 1) / align * align + below(3) * dst_element;
      random.program.Append(static_cast<int>(random.arrays.size()), src_place,
                            absl::MakeConstSpan(dims.data(), rank), element, conversion, dst);
      random.arrays.push_back(std::move(array));
      random.first.push_back(-lowest);
      end = dst + dst_bytes;
    }
    random.bucket_bytes.push_back(end);
  }
  return random;
}

}  // namespace weight_sync::refit::cuda
