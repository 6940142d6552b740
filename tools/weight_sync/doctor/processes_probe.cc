// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/processes_probe.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/peer_process.h"

namespace weight_sync::doctor {
namespace {

int64_t SoftLimit(decltype(RLIMIT_MEMLOCK) resource) {
  rlimit limit;
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

Processes ProbeProcesses() {
  Processes out;
  const auto self = base::PeerProcess::Watch(::getpid(), "doctor");
  if (!self.ok()) out.error = std::string(self.status().message());
  utsname system;
  if (::uname(&system) == 0) out.kernel = system.release;
  std::error_code ignored;
  out.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
  if (std::ifstream file("/proc/sys/kernel/yama/ptrace_scope"); !(file >> out.ptrace_scope)) {
    out.ptrace_scope = -1;
  }
  out.memlock_bytes = SoftLimit(RLIMIT_MEMLOCK);
  out.open_files = SoftLimit(RLIMIT_NOFILE);
  out.file_size_bytes = SoftLimit(RLIMIT_FSIZE);
  return out;
}

}  // namespace weight_sync::doctor
