// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The CUDA driver, loaded as the library itself loads it, and its GPUs. May hang or crash with the
// driver: run it isolated.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_CUDA_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_CUDA_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Cuda ProbeCuda();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_CUDA_PROBE_H_
