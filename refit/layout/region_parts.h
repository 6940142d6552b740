// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The part of a region whose B elements lie in a box: what a rank that holds this box of a trainer
// tensor contributes to an HF tensor.
//
//   std::vector<Region> parts;
//   AppendPartsInB(region, shard, parts);    // begins are still those of the whole tensors

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_REGION_PARTS_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_REGION_PARTS_H_

#include <vector>

#include "refit/layout/box.h"
#include "refit/layout/region.h"

namespace weight_sync::refit {

// As few regions as there are; none where region and box are apart. `box` is inside B.
void AppendPartsInB(const Region& region, const Box& box, std::vector<Region>& out);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_REGION_PARTS_H_
