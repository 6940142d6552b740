// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/random_tensor.h"

#include <algorithm>

namespace weight_sync::refit::testing {
namespace {

int64_t Below(int64_t limit, std::mt19937& rng) {
  return std::uniform_int_distribution<int64_t>(0, limit - 1)(rng);
}

TensorView Transpose(TensorView view, std::mt19937& rng) {
  const int rank = view.shape().rank();
  if (rank < 2) return view;
  view = view.Transposed(rank - 2, rank - 1).value();
  if (rank > 2) view = view.Transposed(0, static_cast<int>(Below(rank, rng))).value();
  return view;
}

TensorView Slice(TensorView view, ViewKind kind, std::mt19937& rng) {
  for (int dim = 0; dim < view.shape().rank(); ++dim) {
    const int64_t size = view.shape()[dim];
    if (size == 0) continue;
    int64_t begin = 0, end = size, step = 1;
    if (kind == ViewKind::kEveryOther) {
      begin = Below(std::min<int64_t>(size, 2), rng);
      step = 2;
    } else if (kind == ViewKind::kReversed) {
      begin = size - 1;
      end = -1;
      step = -1;
    } else {
      begin = Below(size, rng);
      end = begin + 1 + Below(size - begin, rng);
    }
    view = view.Sliced(dim, begin, end, step).value();
  }
  return view;
}

TensorView Broadcast(const TensorView& view, std::mt19937& rng) {
  const int rank = view.shape().rank();
  std::vector<int64_t> dims(view.shape().dims().begin(), view.shape().dims().end());
  std::vector<int64_t> strides(view.strides().begin(), view.strides().end());
  if (rank == 0 || (rank < Shape::kMaxRank && Below(2, rng) == 0)) {
    const int64_t at = Below(rank + 1, rng);
    dims.insert(dims.begin() + at, 3);
    strides.insert(strides.begin() + at, 0);
  } else {
    strides[static_cast<size_t>(Below(rank, rng))] = 0;
  }
  return TensorView::Strided(view.data(), view.dtype(), Shape::Create(dims).value(), strides)
      .value();
}

TensorView Apply(const TensorView& view, ViewKind kind, std::mt19937& rng) {
  switch (kind) {
    case ViewKind::kContiguous:
      return view;
    case ViewKind::kTransposed:
      return Transpose(view, rng);
    case ViewKind::kBroadcast:
      return Broadcast(view, rng);
    case ViewKind::kEveryOther:
    case ViewKind::kReversed:
    case ViewKind::kOffset:
      return Slice(view, kind, rng);
    case ViewKind::kMixed:
      break;
  }
  TensorView mixed = view;
  std::vector<ViewKind> kinds(kAllViewKinds.begin(), kAllViewKinds.end() - 1);
  std::shuffle(kinds.begin(), kinds.end(), rng);
  for (const ViewKind each : kinds) {
    if (Below(3, rng) > 0) mixed = Apply(mixed, each, rng);
  }
  return mixed;
}

}  // namespace

Shape RandomShape(std::mt19937& rng, int max_rank) {
  const int64_t rank = Below(max_rank + 1, rng);
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = elements < 600 ? 1 + Below(7, rng) : 1 + Below(2, rng);
    elements *= dim;
    dims.push_back(dim);
  }
  if (rank > 0 && Below(12, rng) == 0) dims[static_cast<size_t>(Below(rank, rng))] = 0;
  return Shape::Create(dims).value();
}

RandomTensor::RandomTensor(DType dtype, const Shape& shape, ViewKind kind, std::mt19937& rng) {
  Shape base = shape;
  if (IsSubByte(dtype)) {
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    if (dims.empty()) dims.push_back(1);
    dims.back() *= 4;
    base = Shape::Create(dims).value();
    kind = ViewKind::kContiguous;
  }
  storage_.resize(static_cast<size_t>(ByteSize(dtype, base).value()));
  for (std::byte& byte : storage_) byte = static_cast<std::byte>(rng());
  view_ = Apply(TensorView::Contiguous(storage_.data(), dtype, base), kind, rng);
}

std::vector<std::byte> DenseBytes(const TensorView& view) {
  const Shape shape = StorageShape(view.dtype(), view.shape());
  const int64_t bytes = StorageElementBytes(view.dtype());
  std::vector<std::byte> dense;
  for (int64_t element = 0; element < shape.num_elements(); ++element) {
    int64_t rest = element;
    int64_t offset = 0;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      const int64_t stride = IsSubByte(view.dtype()) ? 1 : view.strides()[dim];
      offset += rest % shape[dim] * stride;
      rest /= shape[dim];
    }
    const std::byte* from = view.data() + offset * bytes;
    dense.insert(dense.end(), from, from + bytes);
  }
  return dense;
}

}  // namespace weight_sync::refit::testing
