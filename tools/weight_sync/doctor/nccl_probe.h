// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// NCCL: the library that WEIGHT_SYNC_LIBNCCL names, else VLLM_NCCL_SO_PATH (vLLM's own variable),
// else libnccl.so.2 or libnccl.so where dlopen(3) looks. May crash with that library: run it
// isolated.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_NCCL_PROBE_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_NCCL_PROBE_H_

#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

Nccl ProbeNccl();

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_NCCL_PROBE_H_
