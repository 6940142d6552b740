// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/common/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace weight_sync::tools {

std::string TemporaryParent() {
  const char* parent = std::getenv("TMPDIR");
  return parent != nullptr && *parent != '\0' ? parent : "/tmp";
}

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Create(const std::string& parent,
                                                              absl::string_view prefix) {
  std::string path = absl::StrCat(parent, "/", prefix, ".XXXXXX");
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

}  // namespace weight_sync::tools
