// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/peer_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weight_sync::base {

absl::StatusOr<PeerProcess> PeerProcess::Watch(pid_t pid, absl::string_view role) {
  if (pid <= 0) {
    return absl::UnavailableError(
        absl::StrCat("the ", role,
                     " is not visible in this pid namespace, so its death could not be seen; run "
                     "trainer and engine in one pid namespace"));
  }
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) {
    return absl::UnavailableError(
        absl::StrCat("cannot watch the ", role, " (pid ", pid,
                     "): ", errno == ESRCH ? "no such process" : std::strerror(errno)));
  }
  return PeerProcess(pid, role, std::move(fd));
}

bool PeerProcess::alive() const {
  pollfd poll_fd{fd_.get(), POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&poll_fd, 1, 0);
  } while (ready < 0 && errno == EINTR);
  return ready == 0;
}

std::string PeerProcess::name() const { return absl::StrCat(role_, " (pid ", pid_, ")"); }

absl::Status PeerProcess::LostError() const {
  return absl::UnavailableError(absl::StrCat(name(), " died"));
}

}  // namespace weight_sync::base
