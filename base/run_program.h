// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs another program to its end and returns what it printed. There is no deadline: for tests, and
// for processes that are ended from outside when they take too long. Thread-safe.
//
//   const ProgramResult result = RunProgram({environment + "/bin/python", "-I", "script.py"});
//   ASSERT_EQ(result.exit_code, 0) << result.output;

#ifndef WEIGHT_SYNC_BASE_RUN_PROGRAM_H_
#define WEIGHT_SYNC_BASE_RUN_PROGRAM_H_

#include <string>
#include <vector>

namespace weight_sync::base {

struct ProgramOptions {
  std::string directory;  // where it runs; empty: here
  bool errors = true;     // its standard error goes into the output; otherwise it is this process's
};

struct ProgramResult {
  int exit_code;       // -1: it could not be started, or was ended by a signal
  std::string output;  // or why it could not be started
};

// The first word is the program's path. It inherits the environment, and reads nothing.
ProgramResult RunProgram(std::vector<std::string> command, const ProgramOptions& options = {});

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_RUN_PROGRAM_H_
