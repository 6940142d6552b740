// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EngineProcess: an EngineHost in a process of its own, which is this binary run again. A binary
// that starts one calls MaybeRunEngineProcess first in its main(), or links //fakes:test_main.
//
//   WS_ASSIGN_OR_RETURN(auto engine, EngineProcess::Start({endpoint, info}));

#ifndef WEIGHT_SYNC_FAKES_ENGINE_PROCESS_H_
#define WEIGHT_SYNC_FAKES_ENGINE_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/child_process.h"
#include "fakes/engine_faults.h"
#include "refit/refit_info.h"

namespace weight_sync::fakes {

struct EngineProcessOptions {
  std::string endpoint;
  refit::RefitInfo info;
  std::vector<EngineFault> faults = {};
  int64_t slot_bytes = 0;  // ipc::IpcConsumerOptions::slot_bytes
  int cpu = -1;            // pinned to this core; -1: not pinned
};

class EngineProcess {
 public:
  // Returns when the engine listens, or with the error it could not start with.
  static absl::StatusOr<EngineProcess> Start(const EngineProcessOptions& options);

  ChildProcess& process() { return process_; }

 private:
  explicit EngineProcess(ChildProcess process) : process_(std::move(process)) {}
  ChildProcess process_;
};

// Runs the engine and returns its exit code if this process was started as one.
std::optional<int> MaybeRunEngineProcess(int argc, char** argv);

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_ENGINE_PROCESS_H_
