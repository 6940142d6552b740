// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/seeded_policy.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"

namespace weight_sync::fakes {

absl::StatusOr<std::unique_ptr<SeededPolicy>> SeededPolicy::Create(const refit::RefitInfo& info,
                                                                   uint64_t seed) {
  WS_ASSIGN_OR_RETURN(Parameters parameters, Parameters::Create(info));
  parameters.FillSeeded(seed);
  return Create(std::move(parameters), seed);
}

absl::StatusOr<std::unique_ptr<SeededPolicy>> SeededPolicy::Create(Parameters parameters,
                                                                   uint64_t seed) {
  std::unique_ptr<SeededPolicy> policy(new SeededPolicy(std::move(parameters), seed));
  WS_ASSIGN_OR_RETURN(policy->source_,
                      refit::HfSource::Create(policy->parameters_.AsHf(), &policy->gate_));
  return policy;
}

void SeededPolicy::Step() {
  const refit::StepGate::Step step(gate_);
  parameters_.Perturb(seed_, ++steps_);
}

}  // namespace weight_sync::fakes
