// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

extern char** environ;

namespace weight_sync::base {

ProgramResult RunProgram(std::vector<std::string> command, const ProgramOptions& options) {
  CHECK(!command.empty());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {-1, absl::StrCat("cannot start ", command[0], ": pipe: ", std::strerror(errno))};
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);

  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  if (options.errors) {
    posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
  }
  if (!options.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());
  }
  pid_t pid;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return {-1, absl::StrCat("cannot start ", command[0], ": ", std::strerror(error))};
  }
  writing.reset();

  ProgramResult result{-1, ""};
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(reading.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  PCHECK(::waitpid(pid, &status, 0) == pid);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) absl::StrAppend(&result.output, "\nended by signal ", WTERMSIG(status));
  return result;
}

}  // namespace weight_sync::base
