// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/pending_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return PendingFile(path, temporary, fd);
    // A killed process with this pid may have left its own.
    if (errno != EEXIST) return FileError("create a temporary file for", path, errno);
  }
}

absl::StatusOr<PendingFile> PendingFile::OfText(const std::string& path, absl::string_view text) {
  WS_ASSIGN_OR_RETURN(PendingFile file, Create(path));
  WS_RETURN_IF_ERROR(file.AppendText(text));
  WS_RETURN_IF_ERROR(file.Close());
  return file;
}

PendingFile::PendingFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)),
      mapped_(std::exchange(other.mapped_, {})) {}

PendingFile::~PendingFile() {
  Unmap();
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

absl::Status PendingFile::AppendText(absl::string_view text) {
  return Append({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

absl::StatusOr<absl::Span<std::byte>> PendingFile::Map(size_t size) {
  int error;
  do {
    error = posix_fallocate(fd_, 0, static_cast<off_t>(size));
  } while (error == EINTR);
  if (error != 0) return FileError(absl::StrCat("allocate ", size, " bytes for"), path_, error);
  void* const address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (address == MAP_FAILED) return FileError("map", path_, errno);
  mapped_ = {static_cast<std::byte*>(address), size};
  return mapped_;
}

void PendingFile::Unmap() {
  const absl::Span<std::byte> mapped = std::exchange(mapped_, {});
  if (!mapped.empty()) munmap(mapped.data(), mapped.size());
}

absl::Status PendingFile::Close() {
  Unmap();
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

absl::Status PublishAll(std::vector<PendingFile>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::Status status = files[i].Publish();
    if (status.ok()) continue;
    for (size_t k = 0; k <= i; ++k) unlink(files[k].path().c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::refit
