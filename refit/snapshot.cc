// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/snapshot.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

void Snapshot::Unmap::operator()(std::byte* memory) const { ::munmap(memory, bytes); }

absl::StatusOr<Snapshot> Snapshot::Create(absl::Span<const TensorView> views) {
  Snapshot snapshot;
  for (const TensorView& view : views) {
    const int64_t element = StorageElementBytes(view.dtype());
    int64_t below = 0, above = 0;  // of the first element, to the farthest ones
    if (view.num_bytes() == 0 || view.is_contiguous()) {
      above = view.num_bytes() - element;
    } else {
      for (int dim = 0; dim < view.shape().rank(); ++dim) {
        const int64_t reach =
            (view.shape()[dim] - 1) * view.strides()[static_cast<size_t>(dim)] * element;
        (reach < 0 ? below : above) += reach;
      }
    }
    const int64_t bytes = view.num_bytes() == 0 ? 0 : above - below + element;
    snapshot.extents_.push_back({below, bytes, snapshot.bytes_});
    if (__builtin_add_overflow(snapshot.bytes_, bytes + kAlignment - 1, &snapshot.bytes_)) {
      return absl::InvalidArgumentError("a snapshot of more than 2^63 bytes");
    }
    snapshot.bytes_ -= snapshot.bytes_ % kAlignment;
  }
  if (snapshot.bytes_ > 0) {
    const size_t bytes = static_cast<size_t>(snapshot.bytes_);
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat("a snapshot of the parameters takes ", bytes,
                                                       " bytes: ", std::strerror(errno)));
    }
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // an advice: fewer faults where it is taken
    snapshot.memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
  }
  for (const Extent& extent : snapshot.extents_) {
    snapshot.bases_.push_back(
        extent.bytes == 0 ? nullptr : snapshot.memory_.get() + extent.at - extent.first);
  }
  return snapshot;
}

void Snapshot::Take(absl::Span<const std::byte* const> bases) {
  for (size_t i = 0; i < extents_.size(); ++i) {
    const Extent& extent = extents_[i];
    if (extent.bytes == 0) continue;
    std::memcpy(memory_.get() + extent.at, bases[i] + extent.first,
                static_cast<size_t>(extent.bytes));
  }
}

}  // namespace weight_sync::refit
