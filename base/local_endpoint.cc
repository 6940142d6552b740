// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/local_endpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/digest.h"
#include "base/status_macros.h"

namespace weight_sync::base {
namespace {

std::string LockPath(const std::string& path) { return absl::StrCat(path, ".lock"); }

absl::Status CheckPrivateDirectory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make endpoint directory ", directory, ": ", std::strerror(errno)));
  }
  struct stat info;
  if (::lstat(directory.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, directory);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "endpoint directory %s must be a directory of user %d with mode 700; it is of user %d with "
        "mode %o",
        directory, ::geteuid(), info.st_uid, info.st_mode & 07777));
  }
  return absl::OkStatus();
}

std::string OwnerOf(int lock) {
  char pid[24] = {};
  if (::pread(lock, pid, sizeof(pid) - 1, 0) <= 0) return "unknown";
  return pid;
}

absl::StatusOr<UniqueFd> Lock(const std::string& path) {
  const std::string lock_path = LockPath(path);
  for (;;) {
    UniqueFd fd(::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot open ", lock_path, ": ", std::strerror(errno)));
    }
    struct stat locked, named;
    if (::fstat(fd.get(), &locked) != 0) return absl::ErrnoToStatus(errno, lock_path);
    if (locked.st_uid != ::geteuid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("endpoint ", path, " belongs to user ", locked.st_uid));
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("endpoint ", path, " is owned by living process ", OwnerOf(fd.get())));
    }
    // The last owner may have removed the file between our open and our lock.
    if (::stat(lock_path.c_str(), &named) != 0 || named.st_ino != locked.st_ino) continue;
    const std::string pid = absl::StrCat(::getpid());
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return absl::ErrnoToStatus(errno, lock_path);
    }
    return fd;
  }
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("endpoint ", path, " exists and is not a socket; it is left as it is"));
  }
  if (info.st_uid != ::geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("endpoint ", path, " belongs to user ", info.st_uid));
  }
  if (::unlink(path.c_str()) != 0) return absl::ErrnoToStatus(errno, path);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEndpointPath(absl::string_view path) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.front() != '/' || path.back() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("endpoint '", path, "' must be the absolute path of a file"));
  }
  if (path.size() > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat("endpoint path of ", path.size(),
                                                   " bytes is longer than the ", kLongest,
                                                   " that a unix socket address holds: ", path));
  }
  return absl::OkStatus();
}

std::string DefaultEndpointPath(absl::string_view job, absl::string_view role) {
  Digester digester;
  digester.AddSized(job);
  digester.AddSized(role);
  return absl::StrCat("/tmp/weight_sync-", ::geteuid(), "/", digester.Finish().Hex(), ".sock");
}

absl::StatusOr<LocalEndpoint> LocalEndpoint::Claim(const std::string& path) {
  WS_RETURN_IF_ERROR(CheckEndpointPath(path));
  // At least "/", which is then refused by its name.
  WS_RETURN_IF_ERROR(CheckPrivateDirectory(path.substr(0, std::max<size_t>(1, path.rfind('/')))));
  WS_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path));
  LocalEndpoint claim(path, std::move(lock));
  absl::Status stale = RemoveStaleSocket(path);
  if (!stale.ok()) {
    ::unlink(LockPath(path).c_str());
    claim.lock_.reset();
    return stale;
  }
  return claim;
}

LocalEndpoint::~LocalEndpoint() {
  if (!lock_.valid()) return;
  ::unlink(path_.c_str());
  ::unlink(LockPath(path_).c_str());
}

std::string LocalEndpoint::uri() const { return absl::StrCat("ipc://", path_); }

}  // namespace weight_sync::base
