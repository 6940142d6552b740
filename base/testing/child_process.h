// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// A forked child for tests of what happens between processes and when one dies. The child runs in a
// copy of the test, so EXPECT_* works in it and tells on its standard error.
//
//   ChildProcess child([](ChildProcess::Side& side) {
//     auto claim = LocalEndpoint::Claim(path);
//     EXPECT_TRUE(claim.ok());
//     side.Say("claimed");
//     side.WaitForRelease();
//   });
//   ASSERT_EQ(child.Hear(), "claimed");    // "" if the child died before it said something
//   child.Kill();                          // or: child.Release(); EXPECT_TRUE(child.Succeeded());
//
// Fork before the test starts threads. Not thread-safe.

#ifndef WEIGHT_SYNC_BASE_TESTING_CHILD_PROCESS_H_
#define WEIGHT_SYNC_BASE_TESTING_CHILD_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "absl/log/check.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace weight_sync::base::testing {

class ChildProcess {
 public:
  // The child's view of its parent.
  class Side {
   public:
    void Say(absl::string_view line) {
      const std::string text = std::string(line) + "\n";
      PCHECK(::write(say_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    void WaitForRelease() {
      char byte;
      PCHECK(::read(wait_, &byte, 1) >= 0);
    }

   private:
    friend class ChildProcess;
    Side(int say, int wait) : say_(say), wait_(wait) {}
    int say_;
    int wait_;
  };

  // The child ends when `body` returns, without running any destructor of the test.
  explicit ChildProcess(const std::function<void(Side&)>& body) {
    int said[2], release[2];
    PCHECK(::pipe2(said, O_CLOEXEC) == 0);
    PCHECK(::pipe2(release, O_CLOEXEC) == 0);
    std::fflush(nullptr);
    pid_ = ::fork();
    PCHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(said[0]);
      ::close(release[1]);
      Side side(said[1], release[0]);
      body(side);
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(said[1]);
    ::close(release[0]);
    said_ = UniqueFd(said[0]);
    release_ = UniqueFd(release[1]);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) Kill();
  }

  pid_t pid() const { return pid_; }

  // The next line that the child says.
  std::string Hear() {
    std::string line;
    char byte;
    while (::read(said_.get(), &byte, 1) == 1 && byte != '\n') line.push_back(byte);
    return line;
  }

  // Lets the child return from WaitForRelease().
  void Release() { release_.reset(); }

  // SIGKILL; the child stays a zombie until Reap().
  void KillOnly() { PCHECK(::kill(pid_, SIGKILL) == 0); }
  int Reap() {
    int status = 0;
    PCHECK(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return status;
  }
  void Kill() {
    KillOnly();
    Reap();
  }

  // Waits for the end: true if the child came through `body` without a failed expectation.
  bool Succeeded() {
    const int status = Reap();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd said_;
  UniqueFd release_;
};

}  // namespace weight_sync::base::testing

#endif  // WEIGHT_SYNC_BASE_TESTING_CHILD_PROCESS_H_
