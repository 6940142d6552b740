// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/output_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace weight_sync::convert {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(absl::string_view what, const fs::path& path, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat("cannot ", what, " '", path.string(), "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputDirectory>> OutputDirectory::Create(const std::string& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) return Failed("make", path, error);
  if (!made && !fs::is_empty(path, error)) {
    if (error) return Failed("look into", path, error);
    return absl::FailedPreconditionError(
        absl::StrCat("'", path, "' is there and not empty; name a folder that is new or empty"));
  }
  auto staging = tools::TemporaryDirectory::Create(path, ".weight_sync");
  if (!staging.ok()) {
    if (made) fs::remove(path, error);
    return staging.status();
  }
  return std::unique_ptr<OutputDirectory>(new OutputDirectory(path, made, *std::move(staging)));
}

OutputDirectory::~OutputDirectory() { Remove(); }

void OutputDirectory::Remove() const {
  std::error_code ignored;  // what cannot be removed was made by somebody else
  fs::remove_all(staging_.path(), ignored);
  if (made_) fs::remove(path_, ignored);  // not if it holds something
}

absl::Status OutputDirectory::Publish() {
  absl::Status status;
  on_interrupt_.Undisturbed([&] { status = MoveFiles(); });
  return status;
}

absl::Status OutputDirectory::MoveFiles() {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(staging_.path(), error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return Failed("read", staging_.path(), error);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::make_pair(absl::EndsWith(a, ".index.json"), a) <
           std::make_pair(absl::EndsWith(b, ".index.json"), b);
  });
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path target = fs::path(path_) / names[i];
    fs::rename(fs::path(staging_.path()) / names[i], target, error);
    if (!error) continue;
    std::error_code ignored;
    for (size_t k = 0; k < i; ++k) fs::remove(fs::path(path_) / names[k], ignored);
    return Failed("make", target, error);
  }
  const base::UniqueFd folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || ::fsync(folder.get()) != 0) {
    return Failed("fsync", path_, std::error_code(errno, std::generic_category()));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::convert
