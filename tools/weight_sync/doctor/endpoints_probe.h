// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The folder of the default endpoints: whether one can be claimed there, by claiming one; if there
// is no such folder, whether it could be made.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENDPOINTS_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENDPOINTS_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Endpoints ProbeEndpoints();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_ENDPOINTS_PROBE_H_
