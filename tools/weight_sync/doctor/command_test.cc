// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/command.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace weight_sync::doctor {
namespace {

void WriteScript(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST(CommandTest, FindsTheFirstProgramOfThatNameOnThePath) {
  const std::string first = absl::StrCat(::testing::TempDir(), "/first");
  const std::string second = absl::StrCat(::testing::TempDir(), "/second");
  // A folder and a file that cannot be run are no programs.
  std::filesystem::create_directories(first + "/tool");
  std::filesystem::create_directories(second);
  std::ofstream(first + "/other") << "text";
  WriteScript(second + "/tool", "true");
  PCHECK(::setenv("PATH", absl::StrCat(first, "::/nowhere:", second).c_str(), 1) == 0);
  EXPECT_EQ(FindProgram("tool"), second + "/tool");
  EXPECT_EQ(FindProgram("other"), "");
  PCHECK(::unsetenv("PATH") == 0);
  EXPECT_EQ(FindProgram("tool"), "");
}

TEST(CommandTest, ReadsWhatAProgramPrints) {
  const std::string script = absl::StrCat(::testing::TempDir(), "/speaks");
  WriteScript(script, "echo \"$1 from $PWD\"; echo error >&2");
  EXPECT_EQ(OutputOf({script, "hello"}), "hello from /\n");
}

TEST(CommandTest, AProgramThatFailsOrIsNotThereSaysNothing) {
  const std::string script = absl::StrCat(::testing::TempDir(), "/fails");
  WriteScript(script, "echo half; exit 3");
  EXPECT_EQ(OutputOf({script}), "");
  EXPECT_EQ(OutputOf({"/nowhere/program"}), "");
}

}  // namespace
}  // namespace weight_sync::doctor
