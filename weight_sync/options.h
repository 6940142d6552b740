// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SynchronizerOptions: what a trainer says about its engine and its sync. CheckOptions names the
// setting that is wrong, before anything is opened.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_OPTIONS_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "refit/version.h"
#include "weight_sync/checks.h"

namespace weight_sync {

enum class EngineKind : uint8_t { kVllm, kSglang };

struct SynchronizerOptions {
  EngineKind engine = EngineKind::kVllm;
  // Whether trainer and engine share the machine's devices.
  bool colocated = true;

  // Colocated: absolute path of the engine worker's unix socket; base::DefaultEndpointPath makes
  // one from a job's and an engine's name.
  std::string endpoint;

  // The ring between the two processes. Small slots stay in the cores' caches, and a few are enough
  // to keep both sides busy: measured with //benchmarks:ipc --sweep on two cores with 2 MiB of
  // cache each, where slots of 512 KiB to 4 MiB are alike and smaller ones, or only two, are
  // slower.
  int32_t ring_slots = 4;
  int64_t ring_slot_bytes = 1 << 20;

  // The policy's version now, and the one the engine answers with if the trainer knows it (it is
  // asked, too). Without it the engine is stale until the first sync.
  refit::Version policy_version = 0;
  std::optional<refit::Version> engine_version;

  // Deep verification at every n-th sync, the first included, and again after one that failed its
  // own; 0: never.
  int deep_verification_every = 0;

  absl::Duration connect_timeout = absl::Seconds(30);  // also to find a restarted engine
  absl::Duration sync_timeout = absl::Minutes(5);      // one SyncWeights, whole
  absl::Duration cleanup_timeout = absl::Seconds(5);   // after one that failed

  Checks checks;
};

// InvalidArgument names the setting.
absl::Status CheckOptions(const SynchronizerOptions& options);

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_OPTIONS_H_
