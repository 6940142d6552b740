// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the demo's binary, for its tests.

#ifndef WEIGHT_SYNC_TOOLS_DEMO_DEMO_PROCESS_H_
#define WEIGHT_SYNC_TOOLS_DEMO_DEMO_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace weight_sync::demo {

// A demo that runs. Its standard output and error go to one pipe, or to a terminal of its own. Its
// TMPDIR is a new directory.
class DemoProcess {
 public:
  enum class Output { kPipe, kTerminal };
  explicit DemoProcess(std::vector<std::string> arguments, Output output = Output::kPipe);
  DemoProcess(const DemoProcess&) = delete;
  DemoProcess& operator=(const DemoProcess&) = delete;
  ~DemoProcess();

  // Reads until `text` was printed, or the demo closed its output. Returns whether it was.
  bool AwaitText(const std::string& text);
  void Kill(int signal);
  // Reads the rest and waits; the exit status, or -signal.
  int Wait();

  const std::string& output() const { return output_; }
  const std::string& temporary() const { return temporary_; }

 private:
  bool ReadMore();

  std::string temporary_;
  pid_t pid_ = -1;
  int fd_ = -1;
  std::string output_;
};

struct DemoRun {
  int exit_code;
  std::string output;
  std::vector<std::string> temporary_files;  // what it left in its TMPDIR
};

DemoRun RunDemoBinary(const std::vector<std::string>& arguments);

// With --json added. An object with "unparsable" when that printed anything but JSON.
nlohmann::json RunDemoForJson(std::vector<std::string> arguments, int* exit_code);

// Whether a process of this number exists, or an entry of its in /dev/shm.
bool LeftSomething(pid_t pid);

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_DEMO_PROCESS_H_
