// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `inspect` of the weight_sync command.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECT_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::inspect {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when all tensors are known and the layout is exact, else 1.
void AddInspectCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::inspect

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_INSPECT_INSPECT_COMMAND_H_
