// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where exactly an injected fault strikes, chosen from the checkpoint's tensors.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_INJECTION_H_
#define WEIGHT_SYNC_TOOLS_DEMO_INJECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/engine_faults.h"
#include "refit/checkpoint/checkpoint.h"
#include "tools/demo/demo_options.h"

namespace weight_sync::demo {

struct InjectionPlan {
  std::string text;    // for people; empty when nothing is injected
  int64_t sync = 0;    // at which sync, counted from 0
  int64_t bucket = 0;  // at which bucket, for a fault on the trainer's side of the wire
  std::vector<fakes::EngineFault> engine_faults;
};

// InvalidArgument when the checkpoint has nothing that this fault could strike: no bytes, or for a
// swap no two tensors of one shape and dtype that differ.
absl::StatusOr<InjectionPlan> PlanInjection(const DemoOptions& options,
                                            const refit::Checkpoint& checkpoint);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_INJECTION_H_
