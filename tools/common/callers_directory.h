// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// `bazel run` starts a program in a folder of Bazel's and says in an environment variable where the
// caller stood: what a path on the command line is relative to.
//
//   Open(FromCallersDirectory("models/Qwen3-0.6B"));

#ifndef WEIGHT_SYNC_TOOLS_COMMON_CALLERS_DIRECTORY_H_
#define WEIGHT_SYNC_TOOLS_COMMON_CALLERS_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace weight_sync::tools {

// As it is when it is empty or absolute, or nobody said where the caller stood.
inline std::string FromCallersDirectory(const std::string& path) {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  if (path.empty() || directory == nullptr) return path;
  return (std::filesystem::path(directory) / path).string();
}

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_COMMON_CALLERS_DIRECTORY_H_
