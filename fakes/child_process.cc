// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "base/peer_process.h"
#include "base/status_macros.h"

extern char** environ;

namespace weight_sync::fakes {
namespace {

// Where the child finds the pipe that it reports on.
constexpr int kReportFd = 3;
// Ends the configuration; what follows on standard input is only its end.
constexpr char kEndOfConfig = '\0';

absl::Status WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, "writing to a child process");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::string& role,
                                                 absl::string_view config) {
  int input[2], reports[2];
  // Above the numbers that the child gets them under, or dup2 would meet itself.
  PCHECK(::pipe2(input, O_CLOEXEC) == 0 && ::pipe2(reports, O_CLOEXEC) == 0);
  base::UniqueFd child_input(::fcntl(input[0], F_DUPFD_CLOEXEC, kReportFd + 1));
  base::UniqueFd child_reports(::fcntl(reports[1], F_DUPFD_CLOEXEC, kReportFd + 1));
  ::close(input[0]);
  ::close(reports[1]);
  ChildProcess child;
  child.input_ = base::UniqueFd(input[1]);
  child.reports_ = base::UniqueFd(reports[0]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy = [&actions] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_adddup2(&actions, child_input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_reports.get(), kReportFd);
  std::string name = "/proc/self/exe", argument = role;
  char* const argv[] = {name.data(), argument.data(), nullptr};
  const int error = ::posix_spawn(&child.pid_, "/proc/self/exe", &actions, nullptr, argv, environ);
  if (error != 0) {
    child.pid_ = -1;
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", role));
  }
  ::signal(SIGPIPE, SIG_IGN);  // a child that died early is an error of the write
  WS_RETURN_IF_ERROR(WriteAll(child.input_.get(), config));
  WS_RETURN_IF_ERROR(WriteAll(child.input_.get(), absl::string_view(&kEndOfConfig, 1)));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Destroy();
    pid_ = std::exchange(other.pid_, -1);
    input_ = std::move(other.input_);
    reports_ = std::move(other.reports_);
    pending_ = std::move(other.pending_);
  }
  return *this;
}

void ChildProcess::Destroy() {
  if (pid_ < 0) return;
  CloseInput();
  if (Wait(base::Deadline::After(absl::Seconds(10))).ok()) return;
  Kill(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

absl::StatusOr<std::string> ChildProcess::ReadLine(const base::Deadline& deadline) {
  for (;;) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    pollfd wait{reports_.get(), POLLIN, 0};
    if (::poll(&wait, 1, deadline.remaining_ms()) < 1) {
      if (!deadline.expired()) continue;  // a signal
      return deadline.Exceeded(absl::StrCat("a report of child ", pid_));
    }
    char buffer[4096];
    const ssize_t count = ::read(reports_.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError(absl::StrCat("child ", pid_, " ended"));
    pending_.append(buffer, static_cast<size_t>(count));
  }
}

void ChildProcess::Kill(int signal) {
  if (pid_ > 0) ::kill(pid_, signal);
}

absl::StatusOr<int> ChildProcess::Wait(const base::Deadline& deadline) {
  if (pid_ < 0) return absl::FailedPreconditionError("the child was waited for before");
  WS_ASSIGN_OR_RETURN(const base::PeerProcess process, base::PeerProcess::Watch(pid_, "child"));
  pollfd wait{process.fd(), POLLIN, 0};
  while (::poll(&wait, 1, deadline.remaining_ms()) < 1) {
    if (deadline.expired()) return deadline.Exceeded(absl::StrCat("the end of child ", pid_));
  }
  int status = 0;
  PCHECK(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return status;
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("killed by signal ", WTERMSIG(status));
  return absl::StrCat("exited with ", WEXITSTATUS(status));
}

std::string ChildConfig() {
  std::string config;
  char buffer[4096];
  ssize_t count;
  while ((count = ::read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
    config.append(buffer, static_cast<size_t>(count));
    if (config.back() != kEndOfConfig) continue;
    config.pop_back();
    break;
  }
  return config;
}

void ReportLine(absl::string_view line) {
  WriteAll(kReportFd, absl::StrCat(line, "\n")).IgnoreError();  // a parent that died reads nothing
}

void WaitForParent() {
  char byte;
  ssize_t count;
  do {
    count = ::read(STDIN_FILENO, &byte, 1);
  } while (count > 0 || (count < 0 && errno == EINTR));
}

}  // namespace weight_sync::fakes
