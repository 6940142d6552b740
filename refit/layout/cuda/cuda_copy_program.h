// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CudaCopyProgram: a CopyProgram whose arrays and buckets are in a GPU's memory. A bucket is one
// launch of the kernel in permute_copy.cu, and nothing is allocated for it.
//
// Everything is done in the context that is current when it is called, which must be the one that
// the program was made in. Errors are CudaApi::Check's, with what was tried. Run() is thread-safe as
// the driver is; Bind() is not to overlap with it.
//
//   WS_ASSIGN_OR_RETURN(auto program, CudaCopyProgram::Create(cuda, copies, PermuteCopyFatbin()));
//   WS_RETURN_IF_ERROR(program->Bind(arrays, stream));        // arrays[i] is tensor i's first element
//   WS_RETURN_IF_ERROR(program->Run(/*bucket=*/0, slot, stream));

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_CUDA_CUDA_COPY_PROGRAM_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_CUDA_CUDA_COPY_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/device/cuda_api.h"
#include "refit/layout/copy_program.h"
#include "refit/layout/cuda/permute_copy.h"

namespace weight_sync::refit::cuda {

// What the kernel is given for one bucket, and of how many blocks.
struct PlannedBucket {
  std::vector<PermuteCopy> copies;
  int64_t tiles = 0;
};
PlannedBucket PlanBucket(const CopyProgram& program, int bucket);

class CudaCopyProgram {
 public:
  // Loads `kernels`, the fatbin of permute_copy.cu, and puts the copies into the GPU's memory.
  // ResourceExhausted where that is full; InvalidArgument for a bucket that is too large for one
  // launch. `cuda` is copied.
  static absl::StatusOr<std::unique_ptr<CudaCopyProgram>> Create(
      const CudaApi& cuda, const CopyProgram& program, absl::Span<const std::byte> kernels);

  CudaCopyProgram(const CudaCopyProgram&) = delete;
  CudaCopyProgram& operator=(const CudaCopyProgram&) = delete;
  // Nothing of it may still run.
  ~CudaCopyProgram();

  int buckets() const { return static_cast<int>(buckets_.size()); }

  // From now on these are the arrays, also for what is put on `stream` later. InvalidArgument unless
  // there is one for each tensor that the program names.
  absl::Status Bind(absl::Span<const CudaDevicePointer> arrays, CudaStream stream);

  // Puts the bucket's copies on the stream. FailedPrecondition before the first Bind().
  absl::Status Run(int bucket, CudaDevicePointer dst, CudaStream stream) const;

 private:
  struct Bucket {
    int64_t first;  // of its copies in the GPU's memory
    int64_t copies;
    unsigned int tiles;
  };

  explicit CudaCopyProgram(const CudaApi& cuda) : cuda_(cuda) {}

  const CudaApi cuda_;
  CudaModule module_ = nullptr;
  CudaFunction kernel_ = nullptr;
  CudaDevicePointer copies_ = 0;
  CudaDevicePointer arrays_ = 0;
  int64_t array_count_ = 0;
  bool bound_ = false;
  std::vector<Bucket> buckets_;
};

}  // namespace weight_sync::refit::cuda

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_CUDA_CUDA_COPY_PROGRAM_H_
