// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The weight_sync command: `weight_sync SUBCOMMAND`, one folder here for each subcommand.

#include "CLI/CLI.hpp"
#include "tools/weight_sync/convert/convert_command.h"
#include "tools/weight_sync/doctor/doctor_command.h"
#include "tools/weight_sync/inspect/inspect_command.h"
#include "tools/weight_sync/roundtrip/roundtrip_command.h"

int main(int argc, char** argv) {
  constexpr int kExitUsage = 2;
  int exit_status = 0;
  CLI::App app("Tools for weight synchronization.", "weight_sync");
  app.require_subcommand(1);
  weight_sync::doctor::AddDoctorCommand(app, &exit_status);
  weight_sync::inspect::AddInspectCommand(app, &exit_status);
  weight_sync::roundtrip::AddRoundtripCommand(app, &exit_status);
  weight_sync::convert::AddConvertCommand(app, &exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return exit_status;
}
