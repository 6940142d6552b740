// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A private directory (mode 0700) that is removed, with all that is in it, when this object goes.
// Not thread-safe.
//
//   WS_ASSIGN_OR_RETURN(TemporaryDirectory directory, TemporaryDirectory::Create("/tmp", "demo"));
//   directory.path();   // "/tmp/demo.a8Xk2p"

#ifndef WEIGHT_SYNC_TOOLS_COMMON_TEMPORARY_DIRECTORY_H_
#define WEIGHT_SYNC_TOOLS_COMMON_TEMPORARY_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weight_sync::tools {

// TMPDIR, or /tmp.
std::string TemporaryParent();

class TemporaryDirectory {
 public:
  static absl::StatusOr<TemporaryDirectory> Create(const std::string& parent,
                                                   absl::string_view prefix);

  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_COMMON_TEMPORARY_DIRECTORY_H_
