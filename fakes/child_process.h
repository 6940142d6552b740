// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: this very binary run again in another role, for tests and tools that need two real
// processes. The child gets its configuration as text on standard input, reports lines on a pipe,
// and ends when its standard input is closed, so it never outlives its parent. A child that does
// not end is killed by the destructor. Not thread-safe.
//
//   WS_ASSIGN_OR_RETURN(auto child, ChildProcess::Start("--fake-engine", config));   // parent
//   WS_ASSIGN_OR_RETURN(std::string line, child.ReadLine(deadline));                 // "ready"
//   child.Kill(SIGKILL);
//
//   if (argc == 2 && argv[1] == std::string("--fake-engine")) {                      // child
//     const std::string config = ChildConfig();
//     ReportLine("ready");
//     WaitForParent();
//   }

#ifndef WEIGHT_SYNC_FAKES_CHILD_PROCESS_H_
#define WEIGHT_SYNC_FAKES_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace weight_sync::fakes {

class ChildProcess {
 public:
  static absl::StatusOr<ChildProcess> Start(const std::string& role, absl::string_view config);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Destroy(); }

  pid_t pid() const { return pid_; }

  // The next line that the child reported. Unavailable once it has ended without another.
  absl::StatusOr<std::string> ReadLine(const base::Deadline& deadline);

  void Kill(int signal);

  // Asks the child to end, by closing its standard input.
  void CloseInput() { input_.reset(); }

  // Waits until it has ended; its status as waitpid(2) gives it. DeadlineExceeded leaves it
  // running.
  absl::StatusOr<int> Wait(const base::Deadline& deadline);

 private:
  ChildProcess() = default;
  void Destroy();

  pid_t pid_ = -1;  // -1: reaped
  base::UniqueFd input_;
  base::UniqueFd reports_;
  std::string pending_;
};

// "exited with 1", "killed by signal 9".
std::string DescribeWaitStatus(int status);

// In the child:
std::string ChildConfig();
void ReportLine(absl::string_view line);
void WaitForParent();

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_CHILD_PROCESS_H_
