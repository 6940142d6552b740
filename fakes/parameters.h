// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Parameters: the tensors of a RefitInfo in memory of their own, one mapping for all. What the fake
// trainer trains and the fake engine holds. Not thread-safe.
//
//   WS_ASSIGN_OR_RETURN(Parameters parameters, Parameters::Create(info));
//   parameters.FillSeeded(7);
//   parameters.Perturb(7, /*step=*/1);          // every byte's element has another value now
//   refit::TensorView norm = parameters.view(0);

#ifndef WEIGHT_SYNC_FAKES_PARAMETERS_H_
#define WEIGHT_SYNC_FAKES_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "refit/hf_source.h"
#include "refit/refit_info.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::fakes {

class Parameters {
 public:
  // ResourceExhausted when the machine has less memory available than they take. The memory is
  // touched, so that no later access pays for its first page.
  static absl::StatusOr<Parameters> Create(const refit::RefitInfo& info);

  Parameters(Parameters&& other) noexcept;
  Parameters& operator=(Parameters&&) = delete;
  ~Parameters();

  const refit::RefitInfo& info() const { return info_; }
  const refit::MutableTensorView& view(int tensor) const {
    return views_[static_cast<size_t>(tensor)];
  }
  // As HfSource takes them.
  std::vector<refit::HfParameter> AsHf() const;

  // Every byte of every tensor.
  void FillBytes(uint8_t value);

  // Finite values that depend on the seed, the tensor and the place; no two tensors are equal.
  void FillSeeded(uint64_t seed);

  // An "optimizer step": changes every element of every tensor, so that no tensor of two successive
  // steps is equal. Floats stay finite: only low mantissa bits change.
  void Perturb(uint64_t seed, int64_t step);

 private:
  Parameters(refit::RefitInfo info, std::byte* memory, size_t bytes)
      : info_(std::move(info)), memory_(memory), bytes_(bytes) {}

  refit::RefitInfo info_;
  std::vector<refit::MutableTensorView> views_;
  std::byte* memory_;
  size_t bytes_;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_PARAMETERS_H_
