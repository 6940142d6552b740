// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs another program and reads what it prints. For probes, which run in a child process with a
// deadline (isolated.h): this one has none.
//
//   const std::string path = FindProgram("g++");
//   if (!path.empty()) std::string text = OutputOf({path, "--version"});

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_COMMAND_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_COMMAND_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weight_sync::doctor {

// The program's path by PATH; empty if there is none.
std::string FindProgram(absl::string_view name);

// What it printed on standard output, run in the root folder, so that no workspace or project there
// changes what it says; empty when it could not be run or failed.
std::string OutputOf(std::vector<std::string> command);

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_COMMAND_H_
