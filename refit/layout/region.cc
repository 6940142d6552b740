// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/region.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

using Factor = AxisPattern::Factor;

// Where an axis runs on one side.
struct AxisPlace {
  int dim;
  int64_t step;
  int64_t size;
};

// One pattern with sizes put in.
struct BoundPattern {
  std::vector<int64_t> dims;
  std::vector<int64_t> begin;  // from constant indices
  std::vector<std::pair<std::string, AxisPlace>> axes;
  std::vector<std::pair<std::string, AxisPlace>> indices;
};

absl::Status PatternError(const AxisPattern& pattern, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("axis pattern '", pattern.text(), "': ", what));
}

absl::StatusOr<BoundPattern> Bind(const AxisPattern& pattern, const AxisSizes& sizes) {
  BoundPattern bound;
  for (const AxisPattern::Dimension& dim : pattern.dims()) {
    int64_t step = 1, begin = 0;
    // The fastest factor is the last.
    for (auto factor = dim.factors.rbegin(); factor != dim.factors.rend(); ++factor) {
      int64_t size = factor->size;
      if (factor->kind != Factor::Kind::kConstant) {
        const auto found = sizes.find(factor->name);
        if (found == sizes.end()) {
          return PatternError(pattern, absl::StrCat("'", factor->name, "' has no size"));
        }
        size = found->second;
        if (size < 1) {
          return PatternError(pattern, absl::StrCat("'", factor->name, "' has size ", size));
        }
      }
      const AxisPlace place{static_cast<int>(bound.dims.size()), step, size};
      if (factor->kind == Factor::Kind::kAxis) bound.axes.emplace_back(factor->name, place);
      if (factor->kind == Factor::Kind::kIndex) bound.indices.emplace_back(factor->name, place);
      if (factor->kind == Factor::Kind::kConstant) begin += factor->value * step;
      if (__builtin_mul_overflow(step, size, &step)) {
        return PatternError(pattern, "a dimension of more than 2^63 indices");
      }
    }
    bound.dims.push_back(step);
    bound.begin.push_back(begin);
  }
  // Collected fastest first within a dimension: bring them into row-major order.
  std::stable_sort(bound.axes.begin(), bound.axes.end(), [](const auto& x, const auto& y) {
    return x.second.dim < y.second.dim ||
           (x.second.dim == y.second.dim && x.second.step > y.second.step);
  });
  return bound;
}

std::string Element(const std::vector<int64_t>& prefix, int rank) {
  std::vector<int64_t> index = prefix;
  index.resize(static_cast<size_t>(rank), 0);
  return absl::StrCat("element [", absl::StrJoin(index, ", "), "]");
}

struct Interval {
  int64_t begin;
  int64_t end;
};

// The indices of dimension `dim` that the A side of a region takes, as few ascending intervals.
std::vector<Interval> Indices(const Region& region, int dim) {
  const int64_t begin = region.a.begin[dim];
  std::vector<Interval> intervals = {{begin, begin + 1}};
  for (int axis = region.axes - 1; axis >= 0; --axis) {
    if (region.a.dim[axis] != dim || region.size[axis] == 1) continue;
    const int64_t step = region.a.step[axis];
    if (intervals.size() == 1 && step == intervals[0].end - intervals[0].begin) {
      intervals[0].end = intervals[0].begin + step * region.size[axis];
      continue;
    }
    const std::vector<Interval> once = intervals;
    for (int64_t i = 1; i < region.size[axis]; ++i) {
      for (const Interval& interval : once) {
        intervals.push_back({interval.begin + i * step, interval.end + i * step});
      }
    }
  }
  return intervals;
}

// Whether the A side of a region takes every index of the dimensions from `dim` on.
bool SpansFrom(const Region& region, int dim, const Shape& shape) {
  for (; dim < shape.rank(); ++dim) {
    if (region.a.begin[dim] != 0) return false;
    int64_t spanned = 1;
    for (int axis = region.axes - 1; axis >= 0; --axis) {
      if (region.a.dim[axis] != dim || region.size[axis] == 1) continue;
      if (region.a.step[axis] != spanned) return false;
      spanned *= region.size[axis];
    }
    if (spanned != shape[dim]) return false;
  }
  return true;
}

// Whether `active`, which all hold the indices `prefix` of the dimensions before, cover the rest.
absl::Status CheckCovers(const Shape& shape, const std::vector<const Region*>& active,
                         std::vector<int64_t>& prefix) {
  const int dim = static_cast<int>(prefix.size());
  if (active.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Element(prefix, shape.rank()), " has no counterpart"));
  }
  if (active.size() == 1 && SpansFrom(*active[0], dim, shape)) return absl::OkStatus();
  if (dim == shape.rank()) {
    if (active.size() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(Element(prefix, shape.rank()), " has ", active.size(), " counterparts"));
  }
  struct Event {
    int64_t at;
    bool begins;
    const Region* region;
  };
  std::vector<Event> events;
  for (const Region* region : active) {
    for (const Interval& interval : Indices(*region, dim)) {
      if (interval.end > shape[dim]) {
        prefix.push_back(shape[dim]);
        return absl::InvalidArgumentError(
            absl::StrCat(Element(prefix, shape.rank()), " is outside of ", shape));
      }
      events.push_back({interval.begin, true, region});
      events.push_back({interval.end, false, region});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& x, const Event& y) { return x.at < y.at; });
  std::vector<const Region*> here;
  int64_t at = 0;
  for (size_t e = 0; at < shape[dim];) {
    for (; e < events.size() && events[e].at == at; ++e) {
      if (events[e].begins) {
        here.push_back(events[e].region);
      } else {
        here.erase(std::find(here.begin(), here.end(), events[e].region));
      }
    }
    prefix.push_back(at);
    WS_RETURN_IF_ERROR(CheckCovers(shape, here, prefix));
    prefix.pop_back();
    at = e < events.size() ? events[e].at : shape[dim];
  }
  return absl::OkStatus();
}

}  // namespace

int64_t Region::num_elements() const {
  return std::accumulate(size.begin(), size.begin() + axes, int64_t{1},
                         [](int64_t x, int64_t y) { return x * y; });
}

Region Region::Inverted() const {
  std::vector<int> order(static_cast<size_t>(axes));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](int x, int y) {
    return b.dim[x] < b.dim[y] || (b.dim[x] == b.dim[y] && b.step[x] > b.step[y]);
  });
  Region inverted;
  inverted.axes = axes;
  inverted.a.rank = b.rank;
  inverted.a.begin = b.begin;
  inverted.b.rank = a.rank;
  inverted.b.begin = a.begin;
  for (int axis = 0; axis < axes; ++axis) {
    const int from = order[static_cast<size_t>(axis)];
    inverted.size[axis] = size[from];
    inverted.a.dim[axis] = b.dim[from];
    inverted.a.step[axis] = b.step[from];
    inverted.b.dim[axis] = a.dim[from];
    inverted.b.step[axis] = a.step[from];
  }
  return inverted;
}

absl::StatusOr<RegionTemplate> RegionTemplate::Create(const AxisPattern& a, const AxisPattern& b,
                                                      const AxisSizes& sizes) {
  WS_ASSIGN_OR_RETURN(const BoundPattern bound_a, Bind(a, sizes));
  WS_ASSIGN_OR_RETURN(const BoundPattern bound_b, Bind(b, sizes));
  const auto only_one_side = [&](absl::string_view axis) {
    return absl::InvalidArgumentError(absl::StrCat("axis '", axis, "' is in one of the patterns '",
                                                   a.text(), "' and '", b.text(), "' only"));
  };
  if (bound_a.axes.size() > Region::kMaxAxes) {
    return PatternError(a, absl::StrCat("more than ", Region::kMaxAxes, " axes"));
  }

  RegionTemplate out;
  WS_ASSIGN_OR_RETURN(out.a_shape_, Shape::Create(bound_a.dims));
  WS_ASSIGN_OR_RETURN(out.b_shape_, Shape::Create(bound_b.dims));
  Region& region = out.base_;
  region.axes = static_cast<int>(bound_a.axes.size());
  region.a.rank = out.a_shape_.rank();
  region.b.rank = out.b_shape_.rank();
  std::copy(bound_a.begin.begin(), bound_a.begin.end(), region.a.begin.begin());
  std::copy(bound_b.begin.begin(), bound_b.begin.end(), region.b.begin.begin());
  for (int axis = 0; axis < region.axes; ++axis) {
    const auto& [name, on_a] = bound_a.axes[static_cast<size_t>(axis)];
    const auto on_b =
        std::find_if(bound_b.axes.begin(), bound_b.axes.end(),
                     [&name = name](const auto& other) { return other.first == name; });
    if (on_b == bound_b.axes.end()) return only_one_side(name);
    region.size[axis] = on_a.size;
    region.a.dim[axis] = static_cast<int8_t>(on_a.dim);
    region.a.step[axis] = on_a.step;
    region.b.dim[axis] = static_cast<int8_t>(on_b->second.dim);
    region.b.step[axis] = on_b->second.step;
  }
  for (const auto& [name, place] : bound_b.axes) {
    if (std::none_of(bound_a.axes.begin(), bound_a.axes.end(),
                     [&name = name](const auto& other) { return other.first == name; })) {
      return only_one_side(name);
    }
  }

  const auto add_indices = [&out](const BoundPattern& bound, bool on_a) {
    for (const auto& [name, place] : bound.indices) {
      const auto known = std::find(out.index_names_.begin(), out.index_names_.end(), name);
      const int index = static_cast<int>(known - out.index_names_.begin());
      if (known == out.index_names_.end()) {
        out.index_names_.push_back(name);
        out.index_sizes_.push_back(place.size);
      }
      out.index_steps_.push_back({index, on_a, place.dim, place.step});
    }
  };
  add_indices(bound_a, true);
  add_indices(bound_b, false);
  return out;
}

Region RegionTemplate::At(absl::Span<const int64_t> indices) const {
  CHECK_EQ(indices.size(), index_names_.size());
  Region region = base_;
  for (const IndexStep& step : index_steps_) {
    const int64_t value = indices[static_cast<size_t>(step.index)];
    CHECK(value >= 0 && value < index_sizes_[static_cast<size_t>(step.index)])
        << index_names_[static_cast<size_t>(step.index)] << " = " << value;
    Region::Side& side = step.on_a ? region.a : region.b;
    side.begin[step.dim] += value * step.step;
  }
  return region;
}

absl::Status CheckCoversOnce(const Shape& shape, absl::Span<const Region> regions) {
  if (shape.num_elements() == 0) return absl::OkStatus();
  std::vector<const Region*> active;
  for (const Region& region : regions) {
    CHECK_EQ(region.a.rank, shape.rank());
    active.push_back(&region);
  }
  std::vector<int64_t> prefix;
  return CheckCovers(shape, active, prefix);
}

}  // namespace weight_sync::refit
