// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// /dev/shm: whether a ring of the default size can really be allocated there, and what processes of
// this library that are dead left behind.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_SHARED_MEMORY_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_SHARED_MEMORY_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

SharedMemory ProbeSharedMemory();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_SHARED_MEMORY_PROBE_H_
