// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/demo_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/shared_memory.h"
#include "gtest/gtest.h"

namespace weight_sync::demo {

DemoProcess::DemoProcess(std::vector<std::string> arguments, Output output) {
  temporary_ = absl::StrCat(testing::TempDir(), "/tmpXXXXXX");
  PCHECK(::mkdtemp(temporary_.data()) != nullptr);
  int theirs;
  if (output == Output::kTerminal) {
    fd_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    PCHECK(fd_ >= 0 && ::grantpt(fd_) == 0 && ::unlockpt(fd_) == 0);
    theirs = ::open(::ptsname(fd_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    PCHECK(theirs >= 0);
  } else {
    int ends[2];
    PCHECK(::pipe2(ends, O_CLOEXEC) == 0);
    fd_ = ends[0];
    theirs = ends[1];
  }
  const std::string tmpdir = absl::StrCat("TMPDIR=", temporary_);
  std::vector<std::string> environment = {tmpdir, "TERM=xterm"};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = ::getenv(name)) {
      // Without the second that TSan sleeps at the end of each of the three processes.
      environment.push_back(absl::StrCat(name, "=", value, ":atexit_sleep_ms=0"));
    }
  }
  std::string program = "tools/demo/demo";
  std::vector<char*> argv = {program.data()}, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_ = ::fork();
  PCHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::dup2(theirs, STDOUT_FILENO);
    ::dup2(theirs, STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(theirs);
}

DemoProcess::~DemoProcess() {
  if (pid_ > 0) {
    Kill(SIGTERM);
    Wait();
  }
  ::close(fd_);
}

bool DemoProcess::ReadMore() {
  char buffer[4096];
  ssize_t count;
  do {
    count = ::read(fd_, buffer, sizeof(buffer));
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;  // a terminal whose other side is closed answers EIO
  output_.append(buffer, static_cast<size_t>(count));
  return true;
}

bool DemoProcess::AwaitText(const std::string& text) {
  while (!absl::StrContains(output_, text)) {
    if (!ReadMore()) return false;
  }
  return true;
}

void DemoProcess::Kill(int signal) { ::kill(pid_, signal); }

int DemoProcess::Wait() {
  while (ReadMore()) {
  }
  int status = 0;
  PCHECK(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

DemoRun RunDemoBinary(const std::vector<std::string>& arguments) {
  DemoProcess demo(arguments);
  DemoRun run{demo.Wait(), demo.output(), {}};
  for (const auto& entry : std::filesystem::directory_iterator(demo.temporary())) {
    run.temporary_files.push_back(entry.path().filename());
  }
  return run;
}

nlohmann::json RunDemoForJson(std::vector<std::string> arguments, int* exit_code) {
  arguments.push_back("--json");
  const DemoRun run = RunDemoBinary(arguments);
  *exit_code = run.exit_code;
  nlohmann::json out = nlohmann::json::parse(run.output, nullptr, /*allow_exceptions=*/false);
  if (out.is_object()) return out;
  return {{"unparsable", run.output}};
}

bool LeftSomething(pid_t pid) {
  if (::kill(pid, 0) == 0) return true;
  const std::string prefix = base::SharedMemoryPrefix(pid);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (absl::StartsWith(entry.path().filename().string(), prefix)) return true;
  }
  return false;
}

}  // namespace weight_sync::demo
