// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What the kernel lets processes of this machine do with each other and with memory: pidfd_open(2),
// the pid namespace, the limits.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_PROCESSES_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_PROCESSES_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Processes ProbeProcesses();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_PROCESSES_PROBE_H_
