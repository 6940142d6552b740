// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/toolchain_probe.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/weight_sync/doctor/command.h"

namespace weight_sync::doctor {
namespace {

// The first line of `text` that has `part`.
std::string LineWith(absl::string_view part, absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::StrContains(line, part)) return std::string(absl::StripAsciiWhitespace(line));
  }
  return "";
}

// Debian's Bazel does not know its own version (it prints "no_version"); its package does.
std::string BazelVersion(const std::string& path) {
  std::string version = LineWith("", OutputOf({path, "--version"}));
  if (!absl::StrContains(version, "no_version")) return version;
  const std::string dpkg = FindProgram("dpkg-query");
  if (dpkg.empty()) return version;
  const std::string package = LineWith("", OutputOf({dpkg, "--show", "bazel-bootstrap"}));
  const std::vector<std::string> words = absl::StrSplit(package, '\t');
  if (words.size() == 2) version = absl::StrCat("bazel ", words[1], " (Debian's)");
  return version;
}

std::string FindNvcc() {
  const char* toolkit = std::getenv("WEIGHT_SYNC_CUDA_PATH");
  if (toolkit == nullptr || *toolkit == '\0') return FindProgram("nvcc");
  return absl::StrCat(toolkit, "/bin/nvcc");
}

}  // namespace

Toolchain ProbeToolchain() {
  Toolchain out;
  Tool bazel{"bazel", FindProgram("bazel"), ""};
  if (!bazel.path.empty()) bazel.version = BazelVersion(bazel.path);
  out.tools.push_back(bazel);
  for (const char* compiler : {"g++", "clang++"}) {
    Tool tool{compiler, FindProgram(compiler), ""};
    if (!tool.path.empty()) tool.version = LineWith("", OutputOf({tool.path, "--version"}));
    out.tools.push_back(tool);
  }
  Tool nvcc{"nvcc", FindNvcc(), ""};
  if (!nvcc.path.empty()) nvcc.version = LineWith("release", OutputOf({nvcc.path, "--version"}));
  out.tools.push_back(nvcc);
  for (const Tool& tool : out.tools) {
    if (tool.path.empty() || !tool.version.empty()) continue;
    absl::StrAppend(&out.error, out.error.empty() ? "" : "; ", tool.path,
                    " does not say its version");
  }
  return out;
}

}  // namespace weight_sync::doctor
