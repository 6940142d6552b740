// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_copy.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

// One axis with B's memory put in: a step of the axis moves `a_step` indices in A's dimension and
// `src` bytes in B.
struct Axis {
  int64_t size;
  int64_t a_step;
  int64_t src;
};

// The axes of one dimension of A, slowest first, and where they begin there.
struct DimensionAxes {
  int count = 0;
  std::array<Axis, Region::kMaxAxes> axes;

  // Neighbours that continue each other on both sides are one.
  void Add(const Axis& axis) {
    if (axis.size == 1) return;
    if (count > 0) {
      Axis& last = axes[static_cast<size_t>(count) - 1];
      if (last.a_step == axis.a_step * axis.size && last.src == axis.src * axis.size) {
        last = {last.size * axis.size, axis.a_step, axis.src};
        return;
      }
    }
    axes[static_cast<size_t>(count++)] = axis;
  }

  // How many of the combinations, counted in A's order, lie below index `end` (from the begin).
  int64_t CountBelow(int64_t end) const {
    int64_t below = 0, inner = 1;
    for (int i = 0; i < count; ++i) inner *= axes[static_cast<size_t>(i)].size;
    for (int i = 0; i < count; ++i) {
      const Axis& axis = axes[static_cast<size_t>(i)];
      if (end <= 0) return below;
      inner /= axis.size;
      const int64_t whole = (end - 1) / axis.a_step;
      if (whole >= axis.size) return below + axis.size * inner;
      below += whole * inner;
      end -= whole * axis.a_step;
    }
    return end > 0 ? below + 1 : below;
  }
};

// What a dimension contributes to one copy.
struct Part {
  int64_t a_offset = 0;  // indices from the region's begin
  int64_t src = 0;       // bytes
  int count = 0;
  std::array<Axis, Region::kMaxAxes> axes;
};

// The parts of the dimension inside [begin, end), relative to the region's begin.
std::vector<Part> Intersect(const DimensionAxes& dim, int64_t begin, int64_t end) {
  const int64_t first = dim.CountBelow(begin), last = dim.CountBelow(end);
  std::array<int64_t, Region::kMaxAxes> sizes = {};
  for (int i = 0; i < dim.count; ++i)
    sizes[static_cast<size_t>(i)] = dim.axes[static_cast<size_t>(i)].size;
  std::vector<Box> boxes;
  CutFlatRange(*Shape::Create(absl::MakeConstSpan(sizes.data(), static_cast<size_t>(dim.count))),
               first, last, boxes);
  std::vector<Part> parts;
  parts.reserve(boxes.size());
  for (const Box& box : boxes) {
    Part part;
    for (int i = 0; i < dim.count; ++i) {
      const Axis& axis = dim.axes[static_cast<size_t>(i)];
      part.a_offset += box.begin[i] * axis.a_step;
      part.src += box.begin[i] * axis.src;
      part.axes[static_cast<size_t>(part.count++)] = {box.size[i], axis.a_step, axis.src};
    }
    parts.push_back(part);
  }
  return parts;
}

// Whether some dimension already keeps region and box apart.
bool Apart(const Region& region, const Box& box) {
  std::array<int64_t, Shape::kMaxRank> last = region.a.begin;
  for (int axis = 0; axis < region.axes; ++axis) {
    last[static_cast<size_t>(region.a.dim[axis])] += (region.size[axis] - 1) * region.a.step[axis];
  }
  for (int dim = 0; dim < region.a.rank; ++dim) {
    if (last[static_cast<size_t>(dim)] < box.begin[dim] ||
        region.a.begin[dim] >= box.begin[dim] + box.size[dim]) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status AppendRegion(const Region& region, const RegionSource& source, const Box& box,
                          DType dtype, int64_t dst, CopyProgram& program) {
  WS_ASSIGN_OR_RETURN(const Conversion conversion, ConversionBetween(source.dtype, dtype));
  if (IsSubByte(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("elements of ", dtype, " share bytes"));
  }
  if (Apart(region, box)) return absl::OkStatus();
  const int64_t src_element = DTypeBits(source.dtype) / 8;
  const int64_t dst_element = DTypeBits(dtype) / 8;

  std::array<DimensionAxes, Shape::kMaxRank> dims;
  for (int axis = 0; axis < region.axes; ++axis) {
    dims[static_cast<size_t>(region.a.dim[axis])].Add(
        {region.size[axis], region.a.step[axis],
         region.b.step[axis] * source.strides[static_cast<size_t>(region.b.dim[axis])] *
             src_element});
  }
  int64_t src = 0;
  for (int dim = 0; dim < region.b.rank; ++dim) {
    src += region.b.begin[dim] * source.strides[static_cast<size_t>(dim)] * src_element;
  }

  std::array<std::vector<Part>, Shape::kMaxRank> parts;
  std::array<int64_t, Shape::kMaxRank> dst_stride = {};
  int64_t stride = dst_element;
  for (int dim = region.a.rank - 1; dim >= 0; --dim) {
    const size_t d = static_cast<size_t>(dim);
    dst_stride[d] = stride;
    stride *= box.size[dim];
    const int64_t begin = box.begin[dim] - region.a.begin[dim];
    parts[d] = Intersect(dims[d], begin, begin + box.size[dim]);
    if (parts[d].empty()) return absl::OkStatus();
  }

  // Every combination of one part a dimension is one copy.
  std::array<size_t, Shape::kMaxRank> chosen = {};
  for (;;) {
    std::array<CopyDim, Shape::kMaxRank> copy;
    size_t count = 0;
    int64_t from = src, to = dst;
    for (int dim = 0; dim < region.a.rank; ++dim) {
      const size_t d = static_cast<size_t>(dim);
      const Part& part = parts[d][chosen[d]];
      from += part.src;
      to += (region.a.begin[dim] + part.a_offset - box.begin[dim]) * dst_stride[d];
      for (int i = 0; i < part.count; ++i) {
        const Axis& axis = part.axes[static_cast<size_t>(i)];
        copy[count++] = {axis.size, axis.src, axis.a_step * dst_stride[d]};
      }
    }
    program.Append(source.tensor, from, absl::MakeConstSpan(copy.data(), count), src_element,
                   conversion, to);
    int dim = region.a.rank - 1;
    for (; dim >= 0; --dim) {
      const size_t d = static_cast<size_t>(dim);
      if (++chosen[d] < parts[d].size()) break;
      chosen[d] = 0;
    }
    if (dim < 0) return absl::OkStatus();
  }
}

}  // namespace weight_sync::refit
