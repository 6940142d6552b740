// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CopyProgram: a flat list of copies from tensors into buckets, in bucket order. Built once from
// views and boxes; running it touches no name and allocates nothing. Neighbouring copies that
// continue each other in source and destination become one.
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

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/layout/convert.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

// One dimension of a copy: so many elements, so many bytes apart on each side.
struct CopyDim {
  int64_t size;
  int64_t src_stride;
  int64_t dst_stride;
};

class CopyProgram {
 public:
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
    return static_cast<int64_t>(copies_.size() * sizeof(Copy) + strided_.size() * sizeof(Strided) +
                                first_.size() * sizeof(size_t));
  }

  // `bases` holds each tensor's data(); `dst` the bucket's first byte.
  void Run(int bucket, absl::Span<const std::byte* const> bases, std::byte* dst) const;

 private:
  struct Copy {
    int64_t src;    // bytes from the tensor's first element; may be negative
    int64_t dst;    // bytes from the bucket's first byte
    int64_t bytes;  // of one contiguous run; 0 for a strided copy
    int32_t tensor;
    int32_t strided;  // index into strided_, or -1 for one contiguous run
  };
  // `outer` dimensions, fastest first, of runs of `run` bytes, or of elements that are converted.
  struct Strided {
    Conversion conversion;
    int64_t run;
    int outer;
    std::array<CopyDim, Shape::kMaxRank> dims;
  };

  static void RunStrided(const Strided& strided, const std::byte* src, std::byte* dst);

  std::vector<Copy> copies_;
  std::vector<Strided> strided_;
  std::vector<size_t> first_;  // index of each bucket's first copy
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_COPY_PROGRAM_H_
