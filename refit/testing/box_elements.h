// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: what a box of a row-major tensor holds, an element at a time.

#ifndef WEIGHT_SYNC_REFIT_TESTING_BOX_ELEMENTS_H_
#define WEIGHT_SYNC_REFIT_TESTING_BOX_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refit/layout/box.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit::testing {

// Row-major numbers, within `shape`, of the box's elements in the box's own row-major order.
std::vector<int64_t> FlatElements(const Shape& shape, const Box& box);

// The box's elements, of so many bytes each, of a dense tensor of this shape.
std::vector<std::byte> BoxBytes(const std::vector<std::byte>& dense, const Shape& shape,
                                int64_t element, const Box& box);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_BOX_ELEMENTS_H_
