// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Watches another process of this machine: its death is seen at once, also by SIGKILL, through a
// pidfd (pidfd_open(2), Linux 5.3), which poll(2) reports readable when the process has ended. A
// ZeroMQ receive does not notice a dead peer, so every wait for one polls this descriptor too.
// Thread-safe after creation. A pid that this process's pid namespace does not show is refused.
//
//   WS_ASSIGN_OR_RETURN(base::PeerProcess engine, base::PeerProcess::Watch(pid, "engine"));
//   pollfd fds[] = {{socket_fd, POLLIN, 0}, {engine.fd(), POLLIN, 0}};
//   if (!engine.alive()) return engine.LostError();   // Unavailable, names role and pid

#ifndef WEIGHT_SYNC_BASE_PEER_PROCESS_H_
#define WEIGHT_SYNC_BASE_PEER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace weight_sync::base {

class PeerProcess {
 public:
  // `role` is what errors call it, such as "engine". Unavailable if there is no such process.
  static absl::StatusOr<PeerProcess> Watch(pid_t pid, absl::string_view role);

  pid_t pid() const { return pid_; }
  int fd() const { return fd_.get(); }
  bool alive() const;

  // "engine (pid 12)".
  std::string name() const;
  absl::Status LostError() const;

 private:
  PeerProcess(pid_t pid, absl::string_view role, UniqueFd fd)
      : pid_(pid), role_(role), fd_(std::move(fd)) {}

  pid_t pid_;
  std::string role_;
  UniqueFd fd_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_PEER_PROCESS_H_
