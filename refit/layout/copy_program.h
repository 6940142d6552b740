// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CopyProgram: a flat list of copies from tensors into buckets, in bucket order. Built once from
// views and boxes, each copy with the kernel that suits it; running it touches no name and allocates
// nothing. Neighbouring copies that continue each other in source and destination become one.
//
// Sources are kept as (tensor index, byte offset from its first element), so arrays may be replaced
// between runs. Immutable once built, and then thread-safe to run.
//
//   CopyProgram program;
//   program.StartBucket();
//   program.Append(0, view, box, /*dst=*/64);      // box of tensor 0, row-major at byte 64
//   program.Run(/*bucket=*/0, bases, slot);         // bases[0] == view.data()

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_COPY_PROGRAM_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_COPY_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/layout/convert.h"
#include "refit/layout/kernels/kernels.h"
#include "refit/layout/kernels/strided_copy.h"
#include "refit/layout/worker_pool.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct CopyOptions {
  // That copy a bucket together, the one that calls Run() among them; the others are the program's
  // own, or those that it shares. More than one pays where a core is idle and buckets are of
  // megabytes.
  int threads = 1;

  // Buckets of at least so many bytes are written past the caches: nothing is read that is about to
  // be overwritten, and what reads the bucket finds it in memory. It pays soon where elements are
  // transposed or converted, also for a reader on another core; for runs as they are only in buckets
  // that no cache holds. Measured with //benchmarks:refit and two processors over a ring.
  int64_t stream_elements_from = 256 << 10;
  int64_t stream_runs_from = 16 << 20;

  CpuLevel level = BestCpuLevel();
};

class CopyProgram {
 public:
  explicit CopyProgram(const CopyOptions& options = {})
      : CopyProgram(options, StartWorkers(options)) {}

  // For programs that take turns: StartWorkers(options), one for all of them.
  CopyProgram(const CopyOptions& options, std::shared_ptr<WorkerPool> workers);

  // Null for one thread.
  static std::shared_ptr<WorkerPool> StartWorkers(const CopyOptions& options);

  void StartBucket() { first_.push_back(copies_.size()); }

  // `box` is in storage elements of `view` and inside it.
  void Append(int tensor, const TensorView& view, const Box& box, int64_t dst);

  // Elements from byte `src` of the tensor to byte `dst` of the bucket, over at most kMaxRank
  // dimensions, slowest first. Elements of `element` bytes (1, 2, 4 or 8) unless they are converted.
  void Append(int tensor, int64_t src, absl::Span<const CopyDim> dims, int64_t element,
              Conversion conversion, int64_t dst);

  int buckets() const { return static_cast<int>(first_.size()); }
  int64_t copies() const { return static_cast<int64_t>(copies_.size()); }
  // Of memory that the program itself takes.
  int64_t bytes() const {
    return static_cast<int64_t>(copies_.size() * sizeof(Copy) +
                                strided_.size() * sizeof(StridedCopy) +
                                first_.size() * sizeof(size_t));
  }

  // A bucket's copies in order, for who runs them by other means. Exactly one of `strided`, which the
  // program keeps, and `bytes` of one run is set.
  struct PlannedCopy {
    int tensor;
    int64_t src;
    int64_t dst;
    int64_t bytes;
    const StridedCopy* strided;
  };
  std::vector<PlannedCopy> PlannedCopies(int bucket) const;

  // `bases` holds each tensor's data(); `dst` the bucket's first byte.
  void Run(int bucket, absl::Span<const std::byte* const> bases, std::byte* dst) const;

 private:
  struct Copy {
    int64_t src;  // bytes from the tensor's first element; may be negative
    int64_t dst;  // bytes from the bucket's first byte
    int64_t end;  // bytes of the bucket's copies up to this one and with it
    int32_t tensor;
    int32_t strided;  // index into strided_, or -1 for one contiguous run
  };

  size_t EndOf(int bucket) const;  // of its copies in copies_

  // Bytes of the bucket's copies so far.
  int64_t Copied() const { return copies_.size() > first_.back() ? copies_.back().end : 0; }

  // Those of the copies [first, end), all of one bucket, that are or lie in its bytes [from, to).
  void RunPart(size_t first, size_t end, int64_t from, int64_t to,
               absl::Span<const std::byte* const> bases, std::byte* dst) const;

  const Kernels* kernels_;
  int64_t stream_elements_from_;
  int64_t stream_runs_from_;
  std::shared_ptr<WorkerPool> workers_;  // null for one thread
  std::vector<Copy> copies_;
  std::vector<StridedCopy> strided_;
  std::vector<size_t> first_;  // index of each bucket's first copy
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_COPY_PROGRAM_H_
