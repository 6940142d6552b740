// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weight_sync::base {
namespace {

constexpr char kDirectory[] = "/dev/shm";

absl::Status Errno(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

absl::StatusOr<std::byte*> Map(int fd, int64_t bytes) {
  void* data =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  return static_cast<std::byte*>(data);
}

// A new, empty, locked segment. A sweeper may look at it in the instant before it is locked and
// take it for a dead owner's; then it has lost its name, and another one is made.
absl::StatusOr<std::pair<std::string, UniqueFd>> CreateLocked() {
  static std::atomic<uint64_t> serial{0};
  for (;;) {
    std::string name = absl::StrCat("/", SharedMemoryPrefix(::getpid()), serial++);
    UniqueFd fd(::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!fd.valid()) {
      if (errno == EEXIST) continue;
      return Errno(absl::StrCat("cannot create shared memory ", name));
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) continue;  // the sweeper holds it, and removes it
      absl::Status status = Errno(absl::StrCat("cannot lock shared memory ", name));
      ::shm_unlink(name.c_str());
      return status;
    }
    struct stat info;
    if (::fstat(fd.get(), &info) == 0 && info.st_nlink > 0) {
      return std::make_pair(std::move(name), std::move(fd));
    }
  }
}

}  // namespace

std::string SharedMemoryPrefix() { return absl::StrCat("weight_sync.", ::geteuid(), "."); }

std::string SharedMemoryPrefix(pid_t pid) {
  struct stat pid_namespace = {};  // 0 where /proc does not tell
  ::stat("/proc/self/ns/pid", &pid_namespace);
  return absl::StrCat(SharedMemoryPrefix(), pid_namespace.st_ino, ".", pid, ".");
}

absl::StatusOr<SharedMemory> SharedMemory::Create(int64_t bytes) {
  if (bytes <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory of ", bytes, " bytes; it must be positive"));
  }
  auto created = CreateLocked();
  if (!created.ok()) return created.status();
  SharedMemory segment;
  segment.name_ = std::move(created->first);
  segment.linked_ = std::move(created->second);
  int error;
  do {
    error = ::posix_fallocate(segment.linked_.get(), 0, bytes);
  } while (error == EINTR);
  if (error != 0) {
    struct statvfs fs;
    const int64_t free_bytes =
        ::fstatvfs(segment.linked_.get(), &fs) == 0
            ? static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize)
            : -1;
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory of ", bytes, " bytes does not fit ", kDirectory, " (",
                     free_bytes, " bytes free): ", std::strerror(error)));
  }
  auto data = Map(segment.linked_.get(), bytes);
  if (!data.ok()) return data.status();
  segment.data_ = *data;
  segment.bytes_ = bytes;
  return segment;
}

absl::StatusOr<SharedMemory> SharedMemory::Open(const std::string& name, int64_t bytes) {
  if (!absl::StartsWith(name, absl::StrCat("/", SharedMemoryPrefix())) ||
      absl::StrContains(name.substr(1), '/')) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", name, "' is not a shared-memory name of user ", ::geteuid()));
  }
  UniqueFd fd(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::UnavailableError(
        absl::StrCat("cannot open shared memory ", name, ": ", std::strerror(errno)));
  }
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno(name);
  if (info.st_uid != ::geteuid() || (info.st_mode & 07777) != 0600 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "shared memory %s must be a file of user %d with mode 600; it is of user %d with mode %o",
        name, ::geteuid(), info.st_uid, info.st_mode & 07777));
  }
  if (info.st_size != bytes) {
    return absl::FailedPreconditionError(absl::StrCat("shared memory ", name, " has ", info.st_size,
                                                      " bytes where ", bytes, " were agreed"));
  }
  auto data = Map(fd.get(), bytes);
  if (!data.ok()) return data.status();
  SharedMemory segment;
  segment.name_ = name;
  segment.data_ = *data;
  segment.bytes_ = bytes;
  return segment;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Reset();
    name_ = std::move(other.name_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    linked_ = std::move(other.linked_);
  }
  return *this;
}

absl::Status SharedMemory::Unlink() {
  if (!linked_.valid()) return absl::OkStatus();
  absl::Status status;
  if (::shm_unlink(name_.c_str()) != 0) status = Errno(absl::StrCat("shm_unlink ", name_));
  linked_.reset();
  return status;
}

void SharedMemory::Reset() {
  Unlink().IgnoreError();  // nobody could act on it: the entry was removed by somebody else
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
  data_ = nullptr;
}

int SweepSharedMemory() {
  DIR* directory = ::opendir(kDirectory);
  if (directory == nullptr) return 0;
  const absl::Cleanup close = [directory] { ::closedir(directory); };
  const std::string prefix = SharedMemoryPrefix();
  int removed = 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (!absl::StartsWith(entry->d_name, prefix)) continue;
    const std::string name = absl::StrCat("/", entry->d_name);
    UniqueFd fd(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (!fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat info;
    // Without links another sweeper was first, and the name may be a new segment's by now.
    if (::fstat(fd.get(), &info) != 0 || info.st_nlink == 0) continue;
    if (::shm_unlink(name.c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace weight_sync::base
