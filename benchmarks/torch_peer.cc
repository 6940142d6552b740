// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/torch_peer.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "tools/peers/peer_environment.h"

extern char** environ;

namespace weight_sync::benchmarks {
namespace {

// Importing torch, or making and copying the largest of the arrays, on a busy machine.
constexpr absl::Duration kAnswerTimeout = absl::Minutes(5);

}  // namespace

absl::StatusOr<TorchPeer> TorchPeer::Start(const std::vector<std::string>& script) {
  WS_ASSIGN_OR_RETURN(const std::string environment, peers::FindPeerEnvironment("torch"));
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return absl::ErrnoToStatus(errno, "a pair of sockets for torch");
  }
  TorchPeer peer;
  peer.socket_ = base::UniqueFd(sockets[0]);
  const base::UniqueFd childs(sockets[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy = [&actions] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_adddup2(&actions, childs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, childs.get(), STDOUT_FILENO);
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/1);  // torch's own switch for huge pages
  const std::string python = environment + "/bin/python";
  std::vector<std::string> command = {python, "-I"};
  command.insert(command.end(), script.begin(), script.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (const int error =
          ::posix_spawn(&peer.pid_, python.c_str(), &actions, nullptr, argv.data(), environ);
      error != 0) {
    peer.pid_ = -1;
    return absl::ErrnoToStatus(error, absl::StrCat("starting ", python));
  }
  WS_ASSIGN_OR_RETURN(peer.version_, peer.ReadLine());
  return peer;
}

TorchPeer::TorchPeer(TorchPeer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      pending_(std::move(other.pending_)),
      version_(std::move(other.version_)) {}

TorchPeer::~TorchPeer() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

absl::StatusOr<double> TorchPeer::Run(const std::string& operation) {
  const std::string line = operation + "\n";
  if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("asking torch for '", operation, "'"));
  }
  WS_ASSIGN_OR_RETURN(const std::string answer, ReadLine());
  double seconds;
  if (!absl::SimpleAtod(answer, &seconds)) {
    return absl::InternalError(absl::StrCat("torch answers '", answer, "' to '", operation, "'"));
  }
  return seconds;
}

absl::StatusOr<std::string> TorchPeer::ReadLine() {
  const base::Deadline deadline = base::Deadline::After(kAnswerTimeout);
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, deadline.remaining_ms()) < 1) {
      if (!deadline.expired()) continue;  // a signal
      return deadline.Exceeded("an answer of torch");
    }
    char buffer[256];
    const ssize_t count = ::read(socket_.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError("torch has ended; see above");
    pending_.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace weight_sync::benchmarks
