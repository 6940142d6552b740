// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `roundtrip` of the weight_sync command.
//
// `--json` prints one object:
//
//   {"format": 1,
//    "ok": true,                       // the exit status is 0
//    "checkpoint": "...", "layout": "maxtext:scanned,axis=1,period=1", "float32_masters": false,
//    "tensors": 311, "bytes": 1503300328,            // that an engine would get
//    "passed_through": 0,                            // of these, what comes from the checkpoint again
//    "trainer_tensors": 310, "trainer_bytes": 1192099840,
//    "load_seconds": 0.5, "refit_seconds": 0.4,
//    "shards": "dp=2,tp=2",                          // of simulated ranks; "" without
//    "scratch": "/tmp", "scratch_in_memory": false,
//    "differ": []}                                   // HF tensors that did not come back, by name
//
// Members may be added; one that changes its meaning or goes away changes "format". What could not
// be done at all is {"format": 1, "ok": false, "error": "..."}.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::roundtrip {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when every byte came back, else 1.
void AddRoundtripCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::roundtrip

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_
