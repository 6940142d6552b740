// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs a program to its end and returns what it printed, for tests against other people's programs.
// Thread-safe.
//
//   const ProgramResult result = RunProgram({environment + "/bin/python", "-I", "script.py"});
//   ASSERT_EQ(result.exit_code, 0) << result.output;

#ifndef WEIGHT_SYNC_TOOLS_PEERS_RUN_PROGRAM_H_
#define WEIGHT_SYNC_TOOLS_PEERS_RUN_PROGRAM_H_

#include <string>
#include <vector>

namespace weight_sync::peers {

struct ProgramResult {
  int exit_code;       // -1: it could not be started, or was ended by a signal
  std::string output;  // standard output and standard error
};

// The first word is the program's path. It inherits the environment, and reads nothing.
ProgramResult RunProgram(std::vector<std::string> command);

}  // namespace weight_sync::peers

#endif  // WEIGHT_SYNC_TOOLS_PEERS_RUN_PROGRAM_H_
