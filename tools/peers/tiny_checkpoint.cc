// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/peers/tiny_checkpoint.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/run_program.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "tools/peers/peer_environment.h"

namespace weight_sync::peers {

absl::StatusOr<std::string> TinyCheckpoint(const std::string& family, int seed,
                                           const std::vector<std::string>& options) {
  WS_RETURN_IF_ERROR(FindPeerEnvironment("torch").status());
  std::string directory =
      absl::StrCat(testing::TempDir(), "/", family, "-", seed, absl::StrJoin(options, ""));
  if (std::filesystem::exists(directory)) return directory;
  std::vector<std::string> command = {"tools/peers/make_tiny", "--family", family, "--seed",
                                      absl::StrCat(seed)};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(directory);
  const base::ProgramResult made = base::RunProgram(command);
  if (made.exit_code != 0) {
    return absl::InternalError(absl::StrCat(absl::StrJoin(command, " "), ": ", made.output));
  }
  return directory;
}

}  // namespace weight_sync::peers
