// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/cores.h"

#include <sched.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace weight_sync::benchmarks {

absl::Status PinThisThread(int core) {
  if (core == kAnyCore) return absl::OkStatus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("pinning to core ", core));
  }
  return absl::OkStatus();
}

absl::Status KeepThisThreadOff(int core) {
  if (core == kAnyCore) return absl::OkStatus();
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    return absl::ErrnoToStatus(errno, "asking which cores there are");
  }
  CPU_CLR(core, &set);
  if (CPU_COUNT(&set) > 0 && ::sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("leaving core ", core));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::benchmarks
