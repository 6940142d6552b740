// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SeededPolicy: a trainer whose parameters change at each step, from a seed: two with the same
// tensors, seed and steps hold the same bytes. Counts its memory phases. Step() and a sync may run
// in two threads as far as the StepGate is concerned; the bytes are then torn, as they would be.
//
//   WS_ASSIGN_OR_RETURN(auto policy, SeededPolicy::Create(info, /*seed=*/7));
//   policy->Step();

#ifndef WEIGHT_SYNC_FAKES_SEEDED_POLICY_H_
#define WEIGHT_SYNC_FAKES_SEEDED_POLICY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "fakes/counting_policy.h"
#include "fakes/parameters.h"
#include "refit/hf_source.h"
#include "refit/read_guard.h"

namespace weight_sync::fakes {

class SeededPolicy : public CountingPolicy {
 public:
  // Seeded values, at step 0.
  static absl::StatusOr<std::unique_ptr<SeededPolicy>> Create(const refit::RefitInfo& info,
                                                              uint64_t seed);
  // These values, at step 0.
  static absl::StatusOr<std::unique_ptr<SeededPolicy>> Create(Parameters parameters, uint64_t seed);

  refit::RefitSource& source() override { return *source_; }

  // One optimizer step: every element changes.
  void Step();

  int64_t steps() const { return steps_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  SeededPolicy(Parameters parameters, uint64_t seed)
      : parameters_(std::move(parameters)), seed_(seed) {}

  Parameters parameters_;
  const uint64_t seed_;
  int64_t steps_ = 0;
  refit::StepGate gate_;
  std::unique_ptr<refit::HfSource> source_;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_SEEDED_POLICY_H_
