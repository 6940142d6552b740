// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Whether a server can listen on a port of 127.0.0.1 and be connected to. The port is the kernel's
// choice.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_LOOPBACK_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_LOOPBACK_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Loopback ProbeLoopback();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_LOOPBACK_PROBE_H_
