// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/demo_options.h"

#include <string>

#include "fakes/checks_for_testing.h"

namespace weight_sync::demo {

const char* InjectionName(Injection injection) {
  switch (injection) {
    case Injection::kNone:
      return "none";
    case Injection::kBitflip:
      return "bitflip";
    case Injection::kDrop:
      return "drop";
    case Injection::kSwap:
      return "swap";
    case Injection::kTorn:
      return "torn";
    case Injection::kKillEngine:
      return "kill-engine";
    case Injection::kKillTrainer:
      return "kill-trainer";
  }
  return "";
}

SynchronizerOptions SynchronizerOptionsOf(const DemoOptions& options, const std::string& endpoint) {
  SynchronizerOptions out;
  out.endpoint = endpoint;
  out.ring_slots = options.slots;
  out.ring_slot_bytes = options.slot_bytes;
  out.deep_verification_every = 1;
  out.connect_timeout = options.timeout;
  out.sync_timeout = options.timeout;
  out.checks = ChecksForTesting::Make(options.wire_digest, options.read_guard);
  return out;
}

}  // namespace weight_sync::demo
