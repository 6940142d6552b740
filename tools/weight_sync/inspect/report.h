// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The two reports of `inspect`.
//
// JSON, one object:
//
//   {"format": 1,
//    "ok": true,                        // the exit status is 0
//    "checkpoint": "...", "config": "...", "model_type": "qwen3", "family": "dense",
//    "form": "hf", "layers": 28, ...    // as inspection.h has them
//    "unmatched": {"unknown": [...], "missing": [...], "shape": [...]},
//    "layouts": [{"layout": "tunix", "exact": true, "reason": ""}, ...],
//    "details": {"layout": "tunix", "error": "",
//                "hf_tensors": [{"name": "...", "dtype": "BF16", "shape": [...], "bytes": 2,
//                                "passes_through": false, "part": ""}, ...],
//                "trainer_tensors": [{"name": "...", "shape": [...], "padded": [], "sent": true}],
//                "rows": [{"hf_name": "...", "hf_axes": "(n d) h", "trainer_name": "...",
//                          "trainer_axes": "h n d", "regions": 28}, ...]}}
//
// Members may be added; one that changes its meaning or goes away changes "format". What could not
// be inspected at all is {"format": 1, "ok": false, "error": "..."}.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_REPORT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_REPORT_H_

#include <string>

#include "tools/weight_sync/inspect/inspection.h"

namespace weight_sync::inspect {

// For a person.
std::string TextReport(const Inspection& found);

// Indented, without a line end after it.
std::string JsonReport(const Inspection& found);

}  // namespace weight_sync::inspect

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_REPORT_H_
