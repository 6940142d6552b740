// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/engines_probe.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/weight_sync/doctor/command.h"

namespace weight_sync::doctor {
namespace {

// What tools/peers/setup knows.
constexpr absl::string_view kNames[] = {"safetensors", "torch", "vllm", "sglang", "tunix"};

// Versions as the packages' metadata has them, one a line.
constexpr char kScript[] =
    "from importlib import metadata\n"
    "for name in ('vllm', 'sglang', 'torch', 'safetensors', 'google-tunix'):\n"
    "    try: print(name, metadata.version(name))\n"
    "    except metadata.PackageNotFoundError: pass\n";

// Where tools/peers/setup keeps its environments; empty if no variable says.
std::string PeersFolder() {
  const std::pair<const char*, const char*> places[] = {
      {"WEIGHT_SYNC_PEERS", ""},
      {"XDG_CACHE_HOME", "/weight_sync/peers"},
      {"HOME", "/.cache/weight_sync/peers"},
  };
  for (const auto& [variable, below] : places) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return absl::StrCat(value, below);
  }
  return "";
}

std::vector<Environment> ListEnvironments(const std::string& folder) {
  std::vector<Environment> out;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry->path().filename().string(), absl::MaxSplits('-', 1));
    std::error_code ignored;
    if (!absl::c_linear_search(kNames, parts.first) || !entry->is_directory(ignored)) continue;
    out.push_back({parts.first, parts.second, entry->path().string(),
                   std::filesystem::exists(entry->path() / ".complete", ignored)});
  }
  absl::c_sort(out, [](const Environment& a, const Environment& b) { return a.path < b.path; });
  return out;
}

}  // namespace

Engines ProbeEngines() {
  Engines out;
  out.folder = PeersFolder();
  if (!out.folder.empty()) out.environments = ListEnvironments(out.folder);
  out.python = FindProgram("python3");
  if (out.python.empty()) return out;
  const std::string listed = OutputOf({out.python, "-c", kScript});
  for (const absl::string_view line : absl::StrSplit(listed, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    out.packages.push_back({parts.first, parts.second});
  }
  return out;
}

}  // namespace weight_sync::doctor
