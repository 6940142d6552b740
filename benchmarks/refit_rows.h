// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What //benchmarks:refit measures: tensors of Hugging Face made from a trainer's arrays, each as the
// axes that a family's table would have, and once more as a formula, to verify it.
//
//   for (const RefitRow& row : RefitRows(/*small=*/false)) {
//     WS_ASSIGN_OR_RETURN(RefitJob job, RefitJob::Create(row, {}, memory, 4 << 20));
//     job.FillSlots(slots, 4);
//   }

#ifndef WEIGHT_SYNC_BENCHMARKS_REFIT_ROWS_H_
#define WEIGHT_SYNC_BENCHMARKS_REFIT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "refit/layout/copy_program.h"
#include "refit/layout/region.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::benchmarks {

struct RefitRow {
  // `array` gives tensor `hf` what the two patterns say, at these indices.
  struct Part {
    int hf;
    int array;
    std::string hf_axes;
    std::string array_axes;
    std::vector<int64_t> indices;
  };
  // An element of the arrays, which lie one after another.
  using Formula = std::function<int64_t(int64_t)>;

  std::string name;
  std::string torch;  // what torch_peer.py is asked for
  double goal;        // share of a memcpy of as many bytes
  std::string limit;  // what keeps it from more
  refit::DType from;
  refit::DType to;
  refit::AxisSizes sizes;
  std::vector<refit::Shape> arrays;
  std::vector<refit::Shape> hf;
  std::vector<Part> parts;
  Formula formula;  // of an element of the HF tensors, one after another

  int64_t elements() const;
  int64_t array_bytes() const;
  int64_t hf_bytes() const;
  // Read and written, halved: what a memcpy of so many bytes moves.
  int64_t moved_bytes() const { return (array_bytes() + hf_bytes()) / 2; }
};

// `small`: every path, in a moment.
std::vector<RefitRow> RefitRows(bool small);

// A row compiled into buckets of at most `bucket_bytes`; its arrays lie one after another in `memory`,
// which it borrows.
class RefitJob {
 public:
  static absl::StatusOr<RefitJob> Create(const RefitRow& row, const refit::CopyOptions& options,
                                         const std::byte* memory, int64_t bucket_bytes);

  // All buckets one after another: to `dst`, or each to the next of `slots` slots there in turn.
  void Fill(std::byte* dst) const;
  void FillSlots(std::byte* dst, int slots) const;

  // DataLoss unless `dst`, as Fill() left it, is what the formula says.
  absl::Status Verify(const std::byte* dst) const;
  // DataLoss unless each bucket is what `dst` has there. Writes to `slot`.
  absl::Status VerifySlots(const std::byte* dst, std::byte* slot) const;

 private:
  RefitJob(const RefitRow& row, const refit::CopyOptions& options, int64_t bucket_bytes)
      : row_(&row), bucket_bytes_(bucket_bytes), program_(options) {}

  const RefitRow* row_;
  int64_t bucket_bytes_;
  refit::CopyProgram program_;
  std::vector<const std::byte*> bases_;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_REFIT_ROWS_H_
