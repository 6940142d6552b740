// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Bazel, the compilers and nvcc (of WEIGHT_SYNC_CUDA_PATH if that is set): where they are and which
// version each says it is.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_TOOLCHAIN_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_TOOLCHAIN_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Toolchain ProbeToolchain();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_TOOLCHAIN_PROBE_H_
