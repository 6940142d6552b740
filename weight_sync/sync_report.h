// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SyncReport: what one successful SyncWeights() did, in numbers.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_SYNC_REPORT_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_SYNC_REPORT_H_

#include <cstdint>
#include <string>

#include "refit/version.h"

namespace weight_sync {

enum class Verification : uint8_t {
  kNotRun,      // not this sync's turn (SynchronizerOptions::deep_verification_every)
  kEqual,       // every tensor of the engine's table equals the trainer's
  kCannotTell,  // the engine cannot digest its table; `verification_detail` says why
};

struct SyncReport {
  refit::Version version = 0;
  int64_t tensors = 0;
  int64_t bytes = 0;  // of tensors, without padding
  int64_t buckets = 0;

  double seconds = 0;                  // all of SyncWeights()
  double trainer_blocked_seconds = 0;  // an optimizer step in this time would have failed the sync
  double engine_paused_seconds = 0;    // from the pause to the resume
  double transfer_seconds = 0;         // first bucket to the far end's commit
  double verification_seconds = 0;

  Verification verification = Verification::kNotRun;
  std::string verification_detail;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_SYNC_REPORT_H_
