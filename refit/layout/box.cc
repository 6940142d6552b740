// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/box.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace weight_sync::refit {
namespace {

// Cuts the range [begin, end) of the elements below dimension `dim`, whose outer indices `prefix`
// holds. `inner` is the number of elements of one index of `dim`.
void Cut(const Shape& shape, int dim, int64_t begin, int64_t end, Box& prefix,
         std::vector<Box>& out) {
  if (begin >= end) return;
  if (dim == shape.rank()) {
    out.push_back(prefix);
    return;
  }
  int64_t inner = 1;
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  const int64_t first_whole = begin / inner + (begin % inner != 0);
  const int64_t end_whole = end / inner;
  const auto descend = [&](int64_t index, int64_t from, int64_t to) {
    prefix.begin[dim] = index;
    prefix.size[dim] = 1;
    Cut(shape, dim + 1, from, to, prefix, out);
  };
  if (first_whole > end_whole) {  // inside one index
    descend(end_whole, begin - end_whole * inner, end - end_whole * inner);
    return;
  }
  if (begin < first_whole * inner) {
    descend(first_whole - 1, begin - (first_whole - 1) * inner, inner);
  }
  if (first_whole < end_whole) {
    Box whole = prefix;
    whole.begin[dim] = first_whole;
    whole.size[dim] = end_whole - first_whole;
    for (int i = dim + 1; i < shape.rank(); ++i) {
      whole.begin[i] = 0;
      whole.size[i] = shape[i];
    }
    out.push_back(whole);
  }
  if (end_whole * inner < end) descend(end_whole, 0, end - end_whole * inner);
}

}  // namespace

Box Box::Whole(const Shape& shape) {
  Box box;
  box.rank = shape.rank();
  std::copy(shape.dims().begin(), shape.dims().end(), box.size.begin());
  return box;
}

int64_t Box::num_elements() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= size[i];
  return count;
}

Shape Box::shape() const {
  return *Shape::Create(absl::MakeConstSpan(size.data(), static_cast<size_t>(rank)));
}

int64_t Box::FirstElementIn(const Shape& tensor) const {
  int64_t first = 0;
  for (int dim = 0; dim < rank; ++dim) first = first * tensor[dim] + begin[dim];
  return first;
}

std::string Box::ToString() const {
  return absl::StrCat("[", absl::StrJoin(absl::MakeConstSpan(begin.data(), rank), ", "), "]+[",
                      absl::StrJoin(absl::MakeConstSpan(size.data(), rank), ", "), "]");
}

void CutFlatRange(const Shape& shape, int64_t begin, int64_t end, std::vector<Box>& out) {
  CHECK(0 <= begin && begin <= end && end <= shape.num_elements());
  Box prefix;
  prefix.rank = shape.rank();
  Cut(shape, 0, begin, end, prefix, out);
}

void StoreBox(const std::byte* bytes, const Box& box, const MutableTensorView& tensor) {
  const Shape shape = StorageShape(tensor.dtype(), tensor.shape());
  DCHECK(tensor.is_contiguous());
  DCHECK_EQ(box.rank, shape.rank());
  // The innermost dimensions that the box spans whole form one run with the dimension before them.
  int64_t run = StorageElementBytes(tensor.dtype());
  int outer = shape.rank();
  while (outer > 0) {
    --outer;
    run *= box.size[outer];
    if (box.size[outer] != shape[outer]) break;
  }
  int64_t runs = 1;
  for (int i = 0; i < outer; ++i) runs *= box.size[i];
  std::array<int64_t, Shape::kMaxRank> index = {};
  for (int64_t r = 0; r < runs; ++r) {
    int64_t offset = 0;
    for (int i = 0; i < shape.rank(); ++i) offset = offset * shape[i] + box.begin[i] + index[i];
    std::memcpy(tensor.data() + offset * StorageElementBytes(tensor.dtype()), bytes,
                static_cast<size_t>(run));
    bytes += run;
    for (int i = outer - 1; i >= 0 && ++index[i] == box.size[i]; --i) index[i] = 0;
  }
}

}  // namespace weight_sync::refit
