// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// LinearPolicy: the smallest model there is to train, y = W x + b, as weight_sync sees a trainer's
// model: its parameters under Hugging Face names, read in place.

#ifndef TRAINER_POLICY_H_
#define TRAINER_POLICY_H_

#include <array>
#include <memory>

#include "absl/status/statusor.h"
#include "refit/hf_source.h"
#include "refit/read_guard.h"
#include "refit/refit_source.h"
#include "weight_sync/policy.h"

namespace trainer {

inline constexpr int kInputs = 4;
inline constexpr int kOutputs = 2;
using Input = std::array<float, kInputs>;
using Output = std::array<float, kOutputs>;

class LinearPolicy : public weight_sync::Policy {
 public:
  // All parameters 0.
  static absl::StatusOr<std::unique_ptr<LinearPolicy>> Create();

  weight_sync::refit::RefitSource& source() override { return *source_; }

  // One step of gradient descent, where `output_gradient` is the loss's by the output for `input`.
  void Step(const Input& input, const Output& output_gradient, float learning_rate);

 private:
  LinearPolicy() = default;

  std::array<float, kOutputs * kInputs> weight_ = {};
  std::array<float, kOutputs> bias_ = {};
  weight_sync::refit::StepGate gate_;
  std::unique_ptr<weight_sync::refit::HfSource> source_;  // borrows all of the above
};

}  // namespace trainer

#endif  // TRAINER_POLICY_H_
