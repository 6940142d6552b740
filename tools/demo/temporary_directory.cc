// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace weight_sync::demo {

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Create(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/weight_sync_demo.XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a directory in ", parent));
  }
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;  // what cannot be removed was made by somebody else
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace weight_sync::demo
