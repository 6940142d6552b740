// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace weight_sync::doctor {
namespace {

struct Child {
  pid_t pid = -1;
  base::UniqueFd output;  // closed when its end was read
  std::string text;
  absl::Status failure;
};

[[noreturn]] void RunChild(const std::function<std::string()>& function, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, stream);
  const std::string text = function();
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(output, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) ::_exit(1);
    if (count > 0) at += static_cast<size_t>(count);
  }
  ::_exit(0);
}

Child Start(const std::function<std::string()>& function) {
  Child child;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    child.failure = absl::ErrnoToStatus(errno, "pipe");
    return child;
  }
  child.output = base::UniqueFd(ends[0]);
  const base::UniqueFd theirs(ends[1]);
  child.pid = ::fork();
  if (child.pid == 0) RunChild(function, theirs.get());
  if (child.pid < 0) {
    child.failure = absl::ErrnoToStatus(errno, "fork");
    child.output.reset();
    return child;
  }
  ::setpgid(child.pid, child.pid);  // both do it, so that it is done whoever comes first
  return child;
}

// Its output has ended, so it is ending.
void Finish(Child& child) {
  child.output.reset();
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    child.failure = absl::InternalError(absl::StrCat("the probe died by signal ", WTERMSIG(status),
                                                     " (", ::strsignal(WTERMSIG(status)), ")"));
  } else if (WEXITSTATUS(status) != 0) {
    child.failure =
        absl::InternalError(absl::StrCat("the probe exited with status ", WEXITSTATUS(status)));
  }
}

void ReadSome(Child& child) {
  char buffer[4096];
  const ssize_t count = ::read(child.output.get(), buffer, sizeof(buffer));
  if (count > 0) child.text.append(buffer, static_cast<size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR)) Finish(child);
}

}  // namespace

std::vector<absl::StatusOr<std::string>> RunIsolated(
    const std::vector<std::function<std::string()>>& functions, const base::Deadline& deadline) {
  std::vector<Child> children;
  for (const auto& function : functions) children.push_back(Start(function));
  for (;;) {
    std::vector<pollfd> waiting;
    for (const Child& child : children) {
      // A descriptor below zero is skipped by poll(2).
      waiting.push_back({child.output.valid() ? child.output.get() : -1, POLLIN, 0});
    }
    bool running = false;
    for (const pollfd& one : waiting) running |= one.fd >= 0;
    if (!running || deadline.expired()) break;
    const int64_t milliseconds = absl::ToInt64Milliseconds(deadline.remaining()) + 1;
    ::poll(waiting.data(), waiting.size(),
           static_cast<int>(std::min<int64_t>(milliseconds, 60'000)));
    for (size_t i = 0; i < children.size(); ++i) {
      if (waiting[i].revents != 0) ReadSome(children[i]);
    }
  }
  std::vector<absl::StatusOr<std::string>> answers;
  for (Child& child : children) {
    if (child.pid > 0) ::kill(-child.pid, SIGKILL);
    if (child.output.valid()) {
      child.failure = deadline.Exceeded("waiting for the probe");
      // Not waited for: a process in the middle of a driver's call may not end even by SIGKILL.
      ::waitpid(child.pid, nullptr, WNOHANG);
    }
    if (child.failure.ok()) {
      answers.emplace_back(std::move(child.text));
    } else {
      answers.emplace_back(std::move(child.failure));
    }
  }
  return answers;
}

}  // namespace weight_sync::doctor
