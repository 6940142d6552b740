// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CountingPolicy: the memory phases of a policy for tests, which answer what they are told and count.
//
//   policy->offload_before_status = absl::ResourceExhaustedError("memory is full");
//   EXPECT_EQ(policy->offloads_after, 1);

#ifndef WEIGHT_SYNC_FAKES_COUNTING_POLICY_H_
#define WEIGHT_SYNC_FAKES_COUNTING_POLICY_H_

#include "absl/status/status.h"
#include "weight_sync/policy.h"

namespace weight_sync::fakes {

class CountingPolicy : public Policy {
 public:
  absl::Status OffloadBeforeRefit() override {
    ++offloads_before;
    return offload_before_status;
  }
  absl::Status OffloadAfterRefit() override {
    ++offloads_after;
    return offload_after_status;
  }

  absl::Status offload_before_status;
  absl::Status offload_after_status;
  int offloads_before = 0;
  int offloads_after = 0;
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_COUNTING_POLICY_H_
