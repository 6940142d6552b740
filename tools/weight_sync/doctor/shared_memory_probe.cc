// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/shared_memory_probe.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/shared_memory.h"
#include "weight_sync/ipc/ring.h"
#include "weight_sync/options.h"

namespace weight_sync::doctor {
namespace {

constexpr char kFolder[] = "/dev/shm";

// Whether the process that made the segment of this name is dead: a number in this process's own
// pid namespace, since others' processes are not seen from here. The segment's lock would tell too,
// but taking it, for a moment, makes a process that is just creating it give the name up.
bool CreatorIsDead(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  pid_t pid;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[parts.size() - 2], &pid) || pid <= 0)
    return false;
  if (!absl::StartsWith(name, base::SharedMemoryPrefix(pid))) return false;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

void CountSegments(SharedMemory& out) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(kFolder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, base::SharedMemoryPrefix())) continue;
    ++out.segments;
    if (!CreatorIsDead(name)) continue;
    ++out.leftovers;
    struct stat info;
    if (::stat(entry->path().c_str(), &info) == 0) out.leftover_bytes += info.st_blocks * 512;
  }
}

}  // namespace

SharedMemory ProbeSharedMemory() {
  SharedMemory out;
  struct statvfs fs;
  if (::statvfs(kFolder, &fs) == 0) {
    out.size_bytes = static_cast<int64_t>(fs.f_blocks) * static_cast<int64_t>(fs.f_frsize);
    out.free_bytes = static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
  }
  CountSegments(out);
  const SynchronizerOptions defaults;
  out.ring_bytes = ipc::RingLayout{defaults.ring_slots, defaults.ring_slot_bytes}.bytes();
  // A file size limit that is too low would end this process by SIGXFSZ, as it would a trainer.
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(out.ring_bytes)) {
    out.error = absl::StrCat("files may have ", limit.rlim_cur,
                             " bytes here (RLIMIT_FSIZE), and a ", "ring takes ", out.ring_bytes);
    return out;
  }
  const auto ring = base::SharedMemory::Create(out.ring_bytes);
  if (!ring.ok()) out.error = std::string(ring.status().message());
  return out;
}

}  // namespace weight_sync::doctor
