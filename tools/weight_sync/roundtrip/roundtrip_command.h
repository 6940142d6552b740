// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `roundtrip` of the weight_sync command.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::roundtrip {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when every byte came back, else 1.
void AddRoundtripCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::roundtrip

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_ROUNDTRIP_ROUNDTRIP_COMMAND_H_
