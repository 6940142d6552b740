// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MemoryCopy: how fast this machine copies memory that is in no cache: the limit that every
// transport on it is measured against. Two buffers that are reused, in huge pages where the system
// gives them.
//
//   WS_ASSIGN_OR_RETURN(MemoryCopy copy, MemoryCopy::Create(1 << 30));
//   const double one = copy.OneThread(), two = copy.TwoThreads(1);

#ifndef WEIGHT_SYNC_BENCHMARKS_MEMORY_COPY_H_
#define WEIGHT_SYNC_BENCHMARKS_MEMORY_COPY_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "fakes/parameters.h"

namespace weight_sync::benchmarks {

class MemoryCopy {
 public:
  static absl::StatusOr<MemoryCopy> Create(int64_t bytes);

  int64_t bytes() const { return from_.info().total_bytes(); }

  // One copy of all bytes: by this thread, or half of it by a second thread on `second_core`.
  double OneThread();
  double TwoThreads(int second_core);

  bool equal() const;

 private:
  MemoryCopy(fakes::Parameters from, fakes::Parameters to)
      : from_(std::move(from)), to_(std::move(to)) {}

  fakes::Parameters from_;
  fakes::Parameters to_;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_MEMORY_COPY_H_
