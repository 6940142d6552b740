// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: a copy of a trainer's arrays, in memory that is allocated once. A sync that reads it holds
// the trainer only while the copy is made; the price is the arrays' size in host memory.
//
// Not thread-safe.
//
//   WS_ASSIGN_OR_RETURN(Snapshot snapshot, Snapshot::Create(views));   // how the arrays lie
//   snapshot.Take(bases);                                              // where they are now
//   program.Run(bucket, snapshot.bases(), slot);                       // the same elements

#ifndef WEIGHT_SYNC_REFIT_SNAPSHOT_H_
#define WEIGHT_SYNC_REFIT_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

class Snapshot {
 public:
  // Memory for arrays that lie as these views, wherever they are. ResourceExhausted says how much it
  // would take.
  static absl::StatusOr<Snapshot> Create(absl::Span<const TensorView> views);

  // Copies the arrays; bases[i] is data() of the i-th.
  void Take(absl::Span<const std::byte* const> bases);

  // As data() of each view, in the copy.
  absl::Span<const std::byte* const> bases() const { return bases_; }
  int64_t bytes() const { return bytes_; }

 private:
  // The bytes that a view reaches, from `first` bytes before or behind its data().
  struct Extent {
    int64_t first;
    int64_t bytes;
    int64_t at;  // in memory_
  };
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* memory) const;
  };

  Snapshot() = default;

  std::unique_ptr<std::byte, Unmap> memory_;
  int64_t bytes_ = 0;
  std::vector<Extent> extents_;
  std::vector<const std::byte*> bases_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SNAPSHOT_H_
