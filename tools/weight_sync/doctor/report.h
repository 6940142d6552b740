// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The doctor's two reports.
//
// JSON, one object:
//
//   {"format": 1,
//    "ready": true,                      // the exit status is 0
//    "toolchain": {...}, "cuda": {...}, "nccl": {...}, "shared_memory": {...}, "endpoints": {...},
//    "processes": {...}, "loopback": {...}, "engines": {...},      // as findings.h has them
//    "transports": [                     // one a row of README's table, in its order
//      {"topology": "colocated vLLM", "transport": "IPC", "in_this_version": true,
//       "ability": "works",              // or "not_in_this_version", "missing", "no_transport"
//       "note": "...",
//       "lacks": [{"what": "shared memory", "why": "...", "fix": "..."}]}]}
//
// Members may be added; one that changes its meaning or goes away changes "format".

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_REPORT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_REPORT_H_

#include <string>
#include <vector>

#include "tools/weight_sync/doctor/findings.h"
#include "tools/weight_sync/doctor/verdicts.h"

namespace weight_sync::doctor {

// For a person: aligned lines, each ended.
std::string TextReport(const Findings& findings, const std::vector<Verdict>& verdicts);

// Indented, without a line end after it.
std::string JsonReport(const Findings& findings, const std::vector<Verdict>& verdicts);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_REPORT_H_
