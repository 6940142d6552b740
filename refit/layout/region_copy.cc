// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region_copy.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/layout/combinations.h"

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
    if (count > 0) {
      Axis& last = axes[static_cast<size_t>(count) - 1];
      if (last.a_step == axis.a_step * axis.size && last.src == axis.src * axis.size) {
        last = {last.size * axis.size, axis.a_step, axis.src};
        return;
      }
    }
    axes[static_cast<size_t>(count++)] = axis;
  }

  int64_t Combinations() const {
    int64_t all = 1;
    for (int i = 0; i < count; ++i) all *= axes[static_cast<size_t>(i)].size;
    return all;
  }

  // Of the combination that lies farthest from the begin.
  int64_t LastIndex() const {
    int64_t last = 0;
    for (int i = 0; i < count; ++i) {
      const Axis& axis = axes[static_cast<size_t>(i)];
      last += (axis.size - 1) * axis.a_step;
    }
    return last;
  }

  // How many of the combinations, counted in A's order, lie below index `end` (from the begin).
  int64_t CountBelow(int64_t end) const {
    return CombinationsBelow(
        count, [this](int i) { return axes[static_cast<size_t>(i)].size; },
        [this](int i) { return axes[static_cast<size_t>(i)].a_step; }, end);
  }
};

// What a dimension contributes to one copy.
struct Part {
  int64_t a_offset = 0;  // indices from the region's begin
  int64_t src = 0;       // bytes
  int64_t position = 0;  // combinations of the dimension before this part, in A's order
  int count = 0;
  std::array<Axis, Region::kMaxAxes> axes;
};

// Mostly one: the dimension whole, or one range of its only axis.
using Parts = absl::InlinedVector<Part, 1>;

// The parts of the dimension inside [begin, end), relative to the region's begin, and how many
// combinations they hold.
int64_t Intersect(const DimensionAxes& dim, int64_t begin, int64_t end, Parts& parts) {
  if (begin <= 0 && dim.LastIndex() < end) {
    parts = {{0, 0, 0, dim.count, dim.axes}};
    return dim.Combinations();
  }
  const int64_t first = dim.CountBelow(begin), last = dim.CountBelow(end);
  std::array<int64_t, Region::kMaxAxes> sizes = {};
  for (int i = 0; i < dim.count; ++i) {
    sizes[static_cast<size_t>(i)] = dim.axes[static_cast<size_t>(i)].size;
  }
  std::vector<Box> boxes;
  CutFlatRange(*Shape::Create(absl::MakeConstSpan(sizes.data(), static_cast<size_t>(dim.count))),
               first, last, boxes);
  int64_t position = 0;
  for (const Box& box : boxes) {
    Part& part = parts.emplace_back();
    part.position = position;
    position += box.num_elements();
    for (int i = 0; i < dim.count; ++i) {
      const Axis& axis = dim.axes[static_cast<size_t>(i)];
      part.a_offset += box.begin[i] * axis.a_step;
      part.src += box.begin[i] * axis.src;
      part.axes[static_cast<size_t>(part.count++)] = {box.size[i], axis.a_step, axis.src};
    }
  }
  return last - first;
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

// One dimension of a copy: so many elements, so many bytes apart in B, in the box and in a message of
// nothing else than what region and box share.
struct Step {
  int64_t size;
  int64_t src;
  int64_t dst;
  int64_t packed;
};

// Calls `copy(src, dst, packed, dims)` for each copy of what region and box share, with bytes from the
// begin of B, of the box and of the message. Returns the message's bytes. `strides` are B's.
template <typename Copy>
int64_t ForEachCopy(const Region& region, absl::Span<const int64_t> strides, int64_t src_element,
                    const Box& box, int64_t dst_element, const Copy& copy) {
  if (Apart(region, box)) return 0;
  std::array<DimensionAxes, Shape::kMaxRank> dims;
  for (int axis = 0; axis < region.axes; ++axis) {
    if (region.size[axis] == 1) continue;  // its stride in B may be any number
    dims[static_cast<size_t>(region.a.dim[axis])].Add(
        {region.size[axis], region.a.step[axis],
         region.b.step[axis] * strides[static_cast<size_t>(region.b.dim[axis])] * src_element});
  }
  int64_t src = 0;
  for (int dim = 0; dim < region.b.rank; ++dim) {
    src += region.b.begin[dim] * strides[static_cast<size_t>(dim)] * src_element;
  }

  std::array<Parts, Shape::kMaxRank> parts;
  std::array<int64_t, Shape::kMaxRank> dst_stride = {}, packed_stride = {};
  int64_t stride = dst_element, packed_bytes = dst_element;
  for (int dim = region.a.rank - 1; dim >= 0; --dim) {
    const size_t d = static_cast<size_t>(dim);
    dst_stride[d] = stride;
    stride *= box.size[dim];
    packed_stride[d] = packed_bytes;
    const int64_t begin = box.begin[dim] - region.a.begin[dim];
    packed_bytes *= Intersect(dims[d], begin, begin + box.size[dim], parts[d]);
    if (packed_bytes == 0) return 0;
  }

  // Every combination of one part a dimension is one copy.
  std::array<size_t, Shape::kMaxRank> chosen = {};
  for (;;) {
    std::array<Step, Shape::kMaxRank> steps;
    size_t count = 0;
    int64_t from = src, to = 0, packed = 0;
    for (int dim = 0; dim < region.a.rank; ++dim) {
      const size_t d = static_cast<size_t>(dim);
      const Part& part = parts[d][chosen[d]];
      from += part.src;
      to += (region.a.begin[dim] + part.a_offset - box.begin[dim]) * dst_stride[d];
      packed += part.position * packed_stride[d];
      int64_t inner = packed_stride[d];
      for (int i = part.count - 1; i >= 0; --i) {  // fastest first
        const Axis& axis = part.axes[static_cast<size_t>(i)];
        steps[count + static_cast<size_t>(i)] = {axis.size, axis.src, axis.a_step * dst_stride[d],
                                                 inner};
        inner *= axis.size;
      }
      count += static_cast<size_t>(part.count);
    }
    copy(from, to, packed, absl::MakeConstSpan(steps.data(), count));
    int dim = region.a.rank - 1;
    for (; dim >= 0; --dim) {
      const size_t d = static_cast<size_t>(dim);
      if (++chosen[d] < parts[d].size()) break;
      chosen[d] = 0;
    }
    if (dim < 0) return packed_bytes;
  }
}

// The same with what CopyProgram::Append takes: `dim` makes a CopyDim of a Step.
template <typename Dim>
void Append(int tensor, int64_t from, int64_t to, absl::Span<const Step> steps, const Dim& dim,
            int64_t element, Conversion conversion, CopyProgram& program) {
  std::array<CopyDim, Shape::kMaxRank> dims;
  for (size_t i = 0; i < steps.size(); ++i) dims[i] = dim(steps[i]);
  program.Append(tensor, from, absl::MakeConstSpan(dims.data(), steps.size()), element, conversion,
                 to);
}

absl::Status CheckWholeBytes(DType dtype) {
  if (!IsSubByte(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("elements of ", dtype, " share bytes"));
}

}  // namespace

absl::Status AppendRegion(const Region& region, const RegionSource& source, const Box& box,
                          DType dtype, int64_t dst, CopyProgram& program) {
  WS_ASSIGN_OR_RETURN(const Conversion conversion, ConversionBetween(source.dtype, dtype));
  WS_RETURN_IF_ERROR(CheckWholeBytes(dtype));
  const int64_t element = DTypeBits(source.dtype) / 8;
  ForEachCopy(region, source.strides, element, box, DTypeBits(dtype) / 8,
              [&](int64_t from, int64_t to, int64_t, absl::Span<const Step> steps) {
                Append(
                    source.tensor, from, dst + to, steps,
                    [](const Step& s) { return CopyDim{s.size, s.src, s.dst}; }, element,
                    conversion, program);
              });
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AppendPacked(const Region& region, const RegionSource& source,
                                     const Box& box, DType dtype, int64_t at,
                                     CopyProgram& program) {
  WS_ASSIGN_OR_RETURN(const Conversion conversion, ConversionBetween(source.dtype, dtype));
  WS_RETURN_IF_ERROR(CheckWholeBytes(dtype));
  const int64_t element = DTypeBits(source.dtype) / 8;
  return ForEachCopy(region, source.strides, element, box, DTypeBits(dtype) / 8,
                     [&](int64_t from, int64_t, int64_t packed, absl::Span<const Step> steps) {
                       Append(
                           source.tensor, from, at + packed, steps,
                           [](const Step& s) { return CopyDim{s.size, s.src, s.packed}; }, element,
                           conversion, program);
                     });
}

absl::StatusOr<int64_t> AppendUnpacked(const Region& region, int message, int64_t at,
                                       const Box& box, DType dtype, int64_t dst,
                                       CopyProgram& program) {
  WS_RETURN_IF_ERROR(CheckWholeBytes(dtype));
  const int64_t element = DTypeBits(dtype) / 8;
  const std::array<int64_t, Shape::kMaxRank> nowhere = {};  // B is not looked at
  return ForEachCopy(region, nowhere, element, box, element,
                     [&](int64_t, int64_t to, int64_t packed, absl::Span<const Step> steps) {
                       Append(
                           message, at + packed, dst + to, steps,
                           [](const Step& s) { return CopyDim{s.size, s.packed, s.dst}; }, element,
                           Conversion::kNone, program);
                     });
}

absl::StatusOr<int64_t> PackedBytes(const Region& region, const Box& box, DType dtype) {
  WS_RETURN_IF_ERROR(CheckWholeBytes(dtype));
  const std::array<int64_t, Shape::kMaxRank> nowhere = {};
  return ForEachCopy(region, nowhere, 1, box, DTypeBits(dtype) / 8,
                     [](int64_t, int64_t, int64_t, absl::Span<const Step>) {});
}

}  // namespace weight_sync::refit
