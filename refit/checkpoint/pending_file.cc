// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/pending_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "refit/checkpoint/file_error.h"

namespace weight_sync::refit {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<PendingFile> PendingFile::Create(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  while (true) {
    const std::string temporary =
        absl::StrCat(DirectoryOf(path), "/.weight_sync-", getpid(), "-", counter++, ".tmp");
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return PendingFile(path, temporary, fd);
    // A killed process with this pid may have left its own.
    if (errno != EEXIST) return FileError("create a temporary file for", path, errno);
  }
}

PendingFile::PendingFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

PendingFile::~PendingFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status PendingFile::Append(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError("write", path_, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status PendingFile::Close() {
  const int fd = std::exchange(fd_, -1);
  const int synced = fsync(fd) == 0 ? 0 : errno;
  const int closed = close(fd) == 0 ? 0 : errno;
  if (synced != 0) return FileError("fsync", path_, synced);
  if (closed != 0) return FileError("close", path_, closed);
  return absl::OkStatus();
}

absl::Status PendingFile::Publish() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return FileError("rename a temporary file to", path_, errno);
  }
  temporary_.clear();
  const std::string directory = DirectoryOf(path_);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError("open", directory, errno);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  if (fsync(fd) != 0) return FileError("fsync", directory, errno);
  return absl::OkStatus();
}

}  // namespace weight_sync::refit
