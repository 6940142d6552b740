// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `convert` of the weight_sync command.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::convert {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when the result is there, else 1.
void AddConvertCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::convert

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_CONVERT_CONVERT_COMMAND_H_
