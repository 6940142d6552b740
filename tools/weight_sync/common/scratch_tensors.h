// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ScratchTensors: tensors in a mapped file that has no name, so that they may be larger than memory
// and leave nothing behind, whatever ends the process. Zeros at first.
//
// The folder's space is checked and then allocated: ResourceExhausted says how much there is and how
// much it takes. Thread-safety: different tensors may be written by different threads.
//
//   WS_ASSIGN_OR_RETURN(auto scratch, ScratchTensors::Create("/tmp", specs));
//   Fill(scratch.tensors()[0]);

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SCRATCH_TENSORS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SCRATCH_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "refit/refit_info.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::tools {

// ResourceExhausted when the folder's file system has less than `bytes` free: says so of `what`, and
// `advice`.
absl::Status CheckSpace(const std::string& directory, int64_t bytes, absl::string_view what,
                        absl::string_view advice);

class ScratchTensors {
 public:
  static absl::StatusOr<ScratchTensors> Create(const std::string& directory,
                                               absl::Span<const refit::TensorSpec> tensors);

  ScratchTensors(ScratchTensors&& other) noexcept
      : mapped_(std::exchange(other.mapped_, {})),
        tensors_(std::move(other.tensors_)),
        in_memory_(other.in_memory_) {}
  ScratchTensors& operator=(ScratchTensors&&) = delete;
  ~ScratchTensors();

  // In the order of the specs.
  const std::vector<refit::MutableTensorView>& tensors() const { return tensors_; }
  int64_t bytes() const { return static_cast<int64_t>(mapped_.size()); }

  // Whether the folder is no disk but memory (tmpfs).
  bool in_memory() const { return in_memory_; }

 private:
  ScratchTensors(absl::Span<std::byte> mapped, std::vector<refit::MutableTensorView> tensors,
                 bool in_memory)
      : mapped_(mapped), tensors_(std::move(tensors)), in_memory_(in_memory) {}

  absl::Span<std::byte> mapped_;
  std::vector<refit::MutableTensorView> tensors_;
  bool in_memory_;
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_SCRATCH_TENSORS_H_
