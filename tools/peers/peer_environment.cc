// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/peers/peer_environment.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/run_program.h"

namespace weight_sync::peers {

absl::StatusOr<std::string> FindPeerEnvironment(absl::string_view name) {
  base::ProgramResult found = base::RunProgram({"tools/peers/setup", "--find", std::string(name)});
  absl::StripAsciiWhitespace(&found.output);
  if (found.exit_code != 0) return absl::NotFoundError(found.output);
  return found.output;
}

}  // namespace weight_sync::peers
