// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The environments that tools/peers/setup built, and which engines the python3 on PATH has. Reads
// what is installed and imports none of it.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENGINES_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENGINES_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Engines ProbeEngines();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENGINES_PROBE_H_
