// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "refit/checkpoint/file_error.h"

namespace weight_sync::refit {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: a named pipe is refused below instead of waited for here.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError("open", path, errno);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError("stat", path, errno);
  if (!S_ISREG(info.st_mode)) return BadFile(path, "not a regular file");
  if (info.st_size == 0) return MappedFile({});
  const size_t size = static_cast<size_t>(info.st_size);
  void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return FileError("map", path, errno);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace weight_sync::refit
