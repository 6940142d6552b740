// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The subcommand `doctor` of the weight_sync command.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_DOCTOR_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_DOCTOR_COMMAND_H_

#include "CLI/CLI.hpp"

namespace weight_sync::doctor {

// Adds it to `app`. When the command line asks for it, parsing runs it and sets `exit_status`: 0
// when the transports of this version can run on this machine, else 1.
void AddDoctorCommand(CLI::App& app, int* exit_status);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_DOCTOR_COMMAND_H_
