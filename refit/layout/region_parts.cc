// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_parts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "refit/layout/combinations.h"

namespace weight_sync::refit {
namespace {

// The region with neighbouring axes that continue each other on both sides as one, so that a cut
// through them makes fewer parts. Axes of one index are no axes.
Region Merged(const Region& region) {
  Region merged = region;
  merged.axes = 0;
  for (int axis = 0; axis < region.axes; ++axis) {
    if (region.size[axis] == 1) continue;
    const int last = merged.axes - 1;
    if (last >= 0 && merged.a.dim[last] == region.a.dim[axis] &&
        merged.b.dim[last] == region.b.dim[axis] &&
        merged.a.step[last] == region.a.step[axis] * region.size[axis] &&
        merged.b.step[last] == region.b.step[axis] * region.size[axis]) {
      merged.size[last] *= region.size[axis];
      merged.a.step[last] = region.a.step[axis];
      merged.b.step[last] = region.b.step[axis];
      continue;
    }
    const int to = merged.axes++;
    merged.size[to] = region.size[axis];
    merged.a.dim[to] = region.a.dim[axis];
    merged.a.step[to] = region.a.step[axis];
    merged.b.dim[to] = region.b.dim[axis];
    merged.b.step[to] = region.b.step[axis];
  }
  return merged;
}

}  // namespace

void AppendPartsInB(const Region& region, const Box& box, std::vector<Region>& out) {
  std::vector<Region> parts = {Merged(region)};
  for (int dim = 0; dim < region.b.rank; ++dim) {
    std::vector<Region> cut;
    for (const Region& part : parts) {
      std::vector<int> axes;
      for (int axis = 0; axis < part.axes; ++axis) {
        if (part.b.dim[axis] == dim) axes.push_back(axis);
      }
      std::sort(axes.begin(), axes.end(),
                [&part](int x, int y) { return part.b.step[x] > part.b.step[y]; });
      std::array<int64_t, Region::kMaxAxes> sizes = {};
      for (size_t i = 0; i < axes.size(); ++i) sizes[i] = part.size[axes[i]];
      // How many combinations, counted in B's order, lie below this index of the dimension.
      const auto below = [&](int64_t end) {
        return CombinationsBelow(
            static_cast<int>(axes.size()),
            [&](int i) { return part.size[axes[static_cast<size_t>(i)]]; },
            [&](int i) { return part.b.step[axes[static_cast<size_t>(i)]]; },
            end - part.b.begin[dim]);
      };
      std::vector<Box> ranges;
      CutFlatRange(*Shape::Create(absl::MakeConstSpan(sizes.data(), axes.size())),
                   below(box.begin[dim]), below(box.begin[dim] + box.size[dim]), ranges);
      for (const Box& range : ranges) {
        Region& narrower = cut.emplace_back(part);
        for (size_t i = 0; i < axes.size(); ++i) {
          const int axis = axes[i];
          narrower.size[axis] = range.size[i];
          narrower.a.begin[part.a.dim[axis]] += range.begin[i] * part.a.step[axis];
          narrower.b.begin[dim] += range.begin[i] * part.b.step[axis];
        }
      }
    }
    parts = std::move(cut);
  }
  out.insert(out.end(), parts.begin(), parts.end());
}

}  // namespace weight_sync::refit
