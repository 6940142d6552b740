// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: two random patterns over the same axes, with every pair of elements by brute force.

#ifndef WEIGHT_SYNC_REFIT_TESTING_RANDOM_REGIONS_H_
#define WEIGHT_SYNC_REFIT_TESTING_RANDOM_REGIONS_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "refit/layout/region.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit::testing {

// One tensor on each side, related by every combination of the indices.
struct RandomRelation {
  std::string a_text, b_text;
  AxisSizes sizes;
  std::vector<std::string> index_names;
  Shape a_shape, b_shape;

  // Row-major numbers in a_shape and b_shape of the paired elements for these index values.
  std::vector<std::pair<int64_t, int64_t>> Pairs(
      const std::map<std::string, int64_t>& indices) const;

  // Every combination of index values.
  std::vector<std::map<std::string, int64_t>> Combinations() const;
};

RandomRelation MakeRandomRelation(std::mt19937& rng);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_RANDOM_REGIONS_H_
