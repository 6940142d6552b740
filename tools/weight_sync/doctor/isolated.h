// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs functions in child processes, all at once, each with an answer by the deadline: one that
// crashes, or hangs in a driver, spoils its own answer only. A child's standard streams are
// /dev/null, and it leads a process group of its own that is killed at the end, with what it
// started.
//
// Answers have the order of the functions. DeadlineExceeded: it was still running. Internal: it
// died (says how). For a process without threads, since it forks.
//
//   auto answers = RunIsolated({[] { return Ask(); }}, base::Deadline::After(absl::Seconds(30)));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ISOLATED_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ISOLATED_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"

namespace weight_sync::doctor {

std::vector<absl::StatusOr<std::string>> RunIsolated(
    const std::vector<std::function<std::string()>>& functions, const base::Deadline& deadline);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ISOLATED_H_
