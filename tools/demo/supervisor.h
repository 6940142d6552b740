// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the demo: makes or opens the checkpoint, starts engine and trainer as two processes, shows
// what the trainer reports, and finds out why it failed if it did: which process died, what the
// trainer saw, what the engine says about itself, and what was left behind.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_SUPERVISOR_H_
#define WEIGHT_SYNC_TOOLS_DEMO_SUPERVISOR_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/demo/demo_options.h"
#include "tools/demo/display.h"
#include "tools/demo/trainer_events.h"
#include "weight_sync/generation.h"

namespace weight_sync::demo {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the cause is named; so ends every caught injection
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotCaught = 3;  // an injected fault went unnoticed

// A living engine, asked by the supervisor once the trainer is gone.
struct EngineAfterFailure {
  EngineState state;
  bool answers = false;
  std::string reply;  // to a request for an answer: "version 3", or why there is none
};

struct DemoResult {
  int exit_code = kExitFailed;  // one of the above, or 128 and the signal that interrupted it
  std::string cause;            // one line; empty when all is well

  std::string checkpoint;
  bool made_checkpoint = false;
  int64_t tensors = 0;
  int64_t bytes = 0;
  pid_t engine_pid = 0;  // 0: never started
  pid_t trainer_pid = 0;
  TrainerSetup setup;
  std::vector<StepReport> steps;

  std::string injected;  // what was injected, in words; empty for nothing
  bool caught = false;
  std::optional<EngineAfterFailure> engine_after_failure;
  std::vector<std::string> left_behind;  // shared-memory entries of this run's processes
};

DemoResult RunDemo(const DemoOptions& options, Display& display);

nlohmann::json ToJson(const DemoOptions& options, const DemoResult& result);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_SUPERVISOR_H_
