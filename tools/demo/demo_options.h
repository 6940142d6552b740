// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the demo is asked to do: its command line as data.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_DEMO_OPTIONS_H_
#define WEIGHT_SYNC_TOOLS_DEMO_DEMO_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "weight_sync/options.h"

namespace weight_sync::demo {

// One fault that the demo injects into its second sync (its only one if there is but one).
enum class Injection : uint8_t {
  kNone,
  kBitflip,      // one bit flips on the wire
  kDrop,         // one bucket is lost on the wire
  kSwap,         // the engine loads two equal-shaped tensors into each other's place
  kTorn,         // an optimizer step in the middle of the transfer
  kKillEngine,   // SIGKILL to the engine in the middle of the transfer
  kKillTrainer,  // SIGKILL to the trainer in the middle of the transfer
};
const char* InjectionName(Injection injection);  // as on the command line

struct DemoOptions {
  std::string checkpoint;  // empty: the demo makes one
  int64_t steps = 5;
  int32_t slots = SynchronizerOptions().ring_slots;
  int64_t slot_bytes = SynchronizerOptions().ring_slot_bytes;
  Injection injection = Injection::kNone;
  bool wire_digest = true;
  bool read_guard = true;
  uint64_t seed = 1;
  absl::Duration timeout = absl::Minutes(2);  // of one sync, and of every other wait
};

// The trainer's options for the engine at `endpoint`.
SynchronizerOptions SynchronizerOptionsOf(const DemoOptions& options, const std::string& endpoint);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_DEMO_OPTIONS_H_
