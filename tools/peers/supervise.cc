// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs a server for a test, and leaves nothing of it behind however the test or the server ends:
//
//   supervise DIRECTORY LOG GRACE_SECONDS PROGRAM ARGUMENT...
//
// The server starts in DIRECTORY, which is its HOME and TMPDIR; its output goes to the file LOG. It
// runs until a byte on standard input or a signal asks for the end. Then the server gets a SIGTERM,
// and after GRACE_SECONDS whatever is left of it and of its descendants a SIGKILL; when standard
// input is closed without a word, the test has died, and they get it at once. Descendants cannot get
// away: orphans become children of this process (PR_SET_CHILD_SUBREAPER), also those in sessions of
// their own. When all are gone, the shared memory that they had mapped is unlinked and DIRECTORY is
// removed. One line on standard output then says how the server ended. Exit status: 0 when it ended within the grace time after it was asked
// to, 1 when it had to be killed, 2 when it ended by itself, 3 when it could not be started.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace weight_sync::peers {
namespace {

// How long a wait lasts until it looks around again.
constexpr int kTickMs = 500;

// The processes below `ancestor` at this moment.
std::vector<pid_t> Descendants(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    // "pid (name) state parent ...", where the name may hold anything.
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos) continue;  // it has ended
    pid_t parent = 0;
    std::istringstream(stat.substr(name_end + 3)) >> parent;
    children.emplace(parent, pid);
  }
  std::vector<pid_t> found = {ancestor};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

class Supervisor {
 public:
  Supervisor(std::string directory, std::string log, absl::Duration grace)
      : directory_(std::move(directory)), log_(std::move(log)), grace_(grace) {}

  int Run(char** command) {
    ::setsid();  // signals to the test's process group are not for the server
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, &before_);
    signals_ = base::UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!Start(command)) return 3;
    const Cause cause = AwaitCause();
    int result = cause == Cause::kServerEnded ? 2 : 0;
    if (cause == Cause::kAsked) ::kill(server_, SIGTERM);
    if (cause != Cause::kTestDied) {
      const bool gone = AwaitNoChildren(base::Deadline::After(grace_));
      if (!gone && cause == Cause::kAsked) result = 1;
    }
    KillAll();
    UnlinkSharedMemory();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
    std::printf("%s%s\n", how_it_ended_.c_str(),
                result == 1 ? "; it or a descendant needed a SIGKILL" : "");
    return result;
  }

 private:
  enum class Cause { kServerEnded, kAsked, kTestDied };

  bool Start(char** command) {
    const pid_t supervisor = ::getpid();
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) return false;
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != supervisor) ::_exit(127);
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
      ::signal(SIGPIPE, SIG_DFL);
      const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (log >= 0 && nothing >= 0 && ::chdir(directory_.c_str()) == 0) {
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        ::setenv("HOME", directory_.c_str(), 1);
        ::setenv("TMPDIR", directory_.c_str(), 1);
        ::execv(command[0], command);
      }
      const int error = errno;
      if (::write(failed[1], &error, sizeof(error)) < 0) ::_exit(126);
      ::_exit(127);
    }
    ::close(failed[1]);
    const base::UniqueFd outcome(failed[0]);
    int error = server_ < 0 ? errno : 0;
    if (server_ > 0 && ::read(outcome.get(), &error, sizeof(error)) <= 0) return true;
    if (server_ > 0) ::waitpid(server_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
    std::printf("could not start %s: %s\n", command[0], std::strerror(error));
    return false;
  }

  // Waits for a reason to end.
  Cause AwaitCause() {
    for (;;) {
      NoteSharedMemory();
      pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      ::poll(waits, 2, kTickMs);
      const bool signalled = ReadSignals();
      Reap();
      if (server_ended_) return Cause::kServerEnded;
      if (signalled) return Cause::kAsked;
      char byte;
      if (waits[0].revents != 0) {
        return ::read(STDIN_FILENO, &byte, 1) == 1 ? Cause::kAsked : Cause::kTestDied;
      }
    }
  }

  // Whether one of them asks for the end.
  bool ReadSignals() {
    bool end = false;
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      end |= info.ssi_signo != SIGCHLD;
    }
    return end;
  }

  // Returns false when there is no child any more.
  bool Reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0) return errno != ECHILD;
      if (pid == 0) return true;
      if (pid != server_) continue;
      server_ended_ = true;
      how_it_ended_ = WIFSIGNALED(status) ? absl::StrCat("killed by signal ", WTERMSIG(status))
                                          : absl::StrCat("exited with ", WEXITSTATUS(status));
    }
  }

  bool AwaitNoChildren(const base::Deadline& deadline) {
    while (Reap()) {
      NoteSharedMemory();
      if (deadline.expired()) return false;
      pollfd wait{signals_.get(), POLLIN, 0};
      ::poll(&wait, 1, std::min(deadline.remaining_ms(), kTickMs));
      ReadSignals();
    }
    return true;
  }

  void KillAll() {
    while (Reap()) {
      NoteSharedMemory();
      for (const pid_t pid : Descendants(::getpid())) ::kill(pid, SIGKILL);
      pollfd wait{signals_.get(), POLLIN, 0};
      ::poll(&wait, 1, kTickMs);
      ReadSignals();
    }
  }

  // Adds the files of /dev/shm that the server and its descendants have mapped. By their numbers:
  // a semaphore is mapped under another name than the one that it gets then (sem_open(3) of glibc).
  void NoteSharedMemory() {
    for (const pid_t pid : Descendants(::getpid())) {
      std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
      for (std::string line; std::getline(maps, line);) {
        // "begin-end mode offset major:minor inode path"
        if (!absl::StrContains(line, " /dev/shm/")) continue;
        std::istringstream words(line);
        std::string range, mode, offset, device;
        ino_t inode = 0;
        if (words >> range >> mode >> offset >> device >> inode) shared_memory_.insert(inode);
      }
    }
  }

  void UnlinkSharedMemory() {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
      struct stat file;
      if (::lstat(entry.path().c_str(), &file) == 0 && shared_memory_.count(file.st_ino) > 0) {
        ::unlink(entry.path().c_str());
      }
    }
  }

  const std::string directory_;
  const std::string log_;
  const absl::Duration grace_;
  sigset_t before_;
  base::UniqueFd signals_;
  pid_t server_ = -1;
  bool server_ended_ = false;
  std::string how_it_ended_;
  std::set<ino_t> shared_memory_;  // numbers that a mount of it gives once only
};

}  // namespace
}  // namespace weight_sync::peers

int main(int argc, char** argv) {
  int grace_seconds;
  if (argc < 5 || !absl::SimpleAtoi(argv[3], &grace_seconds)) {
    std::fprintf(stderr, "usage: supervise DIRECTORY LOG GRACE_SECONDS PROGRAM ARGUMENT...\n");
    return 3;
  }
  weight_sync::peers::Supervisor supervisor(argv[1], argv[2], absl::Seconds(grace_seconds));
  return supervisor.Run(argv + 4);
}
