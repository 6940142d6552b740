// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "policy.h"

#include <cstddef>
#include <memory>

#include "base/status_macros.h"
#include "refit/tensor/tensor_view.h"

namespace trainer {

using weight_sync::refit::DType;
using weight_sync::refit::HfSource;
using weight_sync::refit::StepGate;
using weight_sync::refit::TensorView;

absl::StatusOr<std::unique_ptr<LinearPolicy>> LinearPolicy::Create() {
  std::unique_ptr<LinearPolicy> policy(new LinearPolicy);
  const auto* weight = reinterpret_cast<const std::byte*>(policy->weight_.data());
  const auto* bias = reinterpret_cast<const std::byte*>(policy->bias_.data());
  WS_ASSIGN_OR_RETURN(
      policy->source_,
      HfSource::Create(
          {{"head.weight", TensorView::Contiguous(weight, DType::kF32, {kOutputs, kInputs})},
           {"head.bias", TensorView::Contiguous(bias, DType::kF32, {kOutputs})}},
          &policy->gate_));
  return policy;
}

void LinearPolicy::Step(const Input& input, const Output& output_gradient, float learning_rate) {
  const StepGate::Step writing(gate_);  // a sync that overlaps this fails instead of tearing
  for (int o = 0; o < kOutputs; ++o) {
    bias_[o] -= learning_rate * output_gradient[o];
    for (int i = 0; i < kInputs; ++i) {
      weight_[o * kInputs + i] -= learning_rate * output_gradient[o] * input[i];
    }
  }
}

}  // namespace trainer
