// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/run_program.h"

namespace weight_sync::doctor {

std::string FindProgram(absl::string_view name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return "";
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string candidate = absl::StrCat(folder, "/", name);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string OutputOf(std::vector<std::string> command) {
  base::ProgramResult result =
      base::RunProgram(std::move(command), {/*directory=*/"/", /*errors=*/false});
  return result.exit_code == 0 ? std::move(result.output) : "";
}

}  // namespace weight_sync::doctor
