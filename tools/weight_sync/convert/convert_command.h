// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `convert` of the weight_sync command.
//
// `--json` prints one object:
//
//   {"format": 1,
//    "ok": true,                       // the exit status is 0
//    "in": "...", "from": "hf", "out": "...", "to": "tunix",
//    "tensors": 310, "bytes": 1192099840, "files": 1,
//    "rounded": 0, "passed_through": 0,
//    "left_out": [], "zeros": [], "parts_left_away": [],     // as convert.h has them
//    "seconds": 1.5}
//
// Members may be added; one that changes its meaning or goes away changes "format". What could not
// be done is {"format": 1, "ok": false, "error": "..."}.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::convert {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when the result is there, else 1.
void AddConvertCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_
