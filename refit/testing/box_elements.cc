// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/box_elements.h"

namespace weight_sync::refit::testing {

std::vector<int64_t> FlatElements(const Shape& shape, const Box& box) {
  std::vector<int64_t> flat;
  for (int64_t element = 0; element < box.num_elements(); ++element) {
    int64_t rest = element, place = 0, stride = 1;
    for (int dim = box.rank - 1; dim >= 0; --dim) {
      place += (box.begin[dim] + rest % box.size[dim]) * stride;
      rest /= box.size[dim];
      stride *= shape[dim];
    }
    flat.push_back(place);
  }
  return flat;
}

std::vector<std::byte> BoxBytes(const std::vector<std::byte>& dense, const Shape& shape,
                                int64_t element, const Box& box) {
  std::vector<std::byte> bytes;
  for (const int64_t place : FlatElements(shape, box)) {
    const auto from = dense.begin() + place * element;
    bytes.insert(bytes.end(), from, from + element);
  }
  return bytes;
}

}  // namespace weight_sync::refit::testing
