// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the trainer process tells the supervisor, one line of JSON each.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_TRAINER_EVENTS_H_
#define WEIGHT_SYNC_TOOLS_DEMO_TRAINER_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "weight_sync/sync_report.h"

namespace weight_sync::demo {

// Once, before the first step.
struct TrainerSetup {
  double load_seconds = 0;
  int64_t memory_copy_bytes = 0;
  double memory_copy_rate = 0;  // bytes a second
};

struct Progress {
  int64_t step = 0;
  std::string phase;  // "training", "transferring", ...
  int64_t done = 0;   // of `of` buckets, while transferring
  int64_t of = 0;
};

// One step of the training loop, as far as it came.
struct StepReport {
  int64_t step = 0;            // from 1
  int64_t trained = 0;         // optimizer steps, each followed by a mark
  refit::Version version = 0;  // the policy's
  bool stale_before = false;   // before the sync, if one was needed
  bool stale_after = false;
  std::optional<SyncReport> sync;  // none: not stale, or failed
  // The engine answered with this version and exactly the trainer's weights.
  bool answered = false;
};

// The last event of a trainer that fails is the reason; one that ends well sends none.
using TrainerEvent = std::variant<TrainerSetup, Progress, StepReport, absl::Status>;

std::string EventToLine(const TrainerEvent& event);
absl::StatusOr<TrainerEvent> EventFromLine(absl::string_view line);

nlohmann::json ToJson(const StepReport& step);

// Compact, on one line; bytes that are not UTF-8 are replaced.
std::string OneLine(const nlohmann::json& json);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_TRAINER_EVENTS_H_
