// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The demo's trainer process: this binary run again. It loads the checkpoint, trains (from a seed)
// and syncs step by step through the staleness handshake, and asks the engine for its answer after
// each. Reports TrainerEvents.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_TRAINER_H_
#define WEIGHT_SYNC_TOOLS_DEMO_TRAINER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "fakes/child_process.h"
#include "tools/demo/demo_options.h"

namespace weight_sync::demo {

struct TrainerConfig {
  DemoOptions options;  // its checkpoint is set
  std::string endpoint;
  bool progress = false;  // whether anybody looks at Progress
  // Where a fault on the trainer's side of the wire strikes.
  int64_t fault_sync = 0;
  int64_t fault_bucket = 0;
};

absl::StatusOr<fakes::ChildProcess> StartTrainer(const TrainerConfig& config);

// Runs the trainer and returns its exit code if this process was started as one.
std::optional<int> MaybeRunTrainer(int argc, char** argv);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_TRAINER_H_
