// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Findings as JSON and back: to_json and from_json for nlohmann::json, member by member under the
// names of findings.h. A probe's child process answers its parent with it.
//
//   const std::string text = nlohmann::json(cuda).dump();
//   const Cuda same = nlohmann::json::parse(text).get<Cuda>();

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_JSON_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_JSON_H_

#include "nlohmann/json.hpp"
#include "tools/weight_sync/doctor/findings.h"

namespace weight_sync::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tool, name, path, version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Toolchain, error, tools)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gpu, ordinal, name, uuid, memory_bytes, compute_capability)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cuda, error, library, driver_version, gpus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Nccl, error, library, version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SharedMemory, error, size_bytes, free_bytes, ring_bytes,
                                   segments, leftovers, leftover_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Endpoints, error, folder, existed, owner, mode)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Processes, error, kernel, pid_namespace, ptrace_scope,
                                   memlock_bytes, open_files, file_size_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Loopback, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Environment, name, version, path, complete)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Package, name, version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Engines, error, folder, environments, python, packages)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Findings, toolchain, cuda, nccl, shared_memory, endpoints,
                                   processes, loopback, engines)

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_JSON_H_
