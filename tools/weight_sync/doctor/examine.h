// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs every probe and gathers what they found. All run at once, each in a process of its own: one
// that dies or is not done by `timeout` has that as its group's error, and touches nothing else.
//
//   const Findings findings = Examine(absl::Seconds(30));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_EXAMINE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_EXAMINE_H_

#include "absl/time/time.h"
#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Findings Examine(absl::Duration timeout);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_EXAMINE_H_
