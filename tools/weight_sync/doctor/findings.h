// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// What `weight_sync doctor` found out about a machine: plain data, which a probe fills and the
// verdicts and the reports read. Its JSON (`doctor --json`) has the members under their names here.
//
// In every group `error` says why what the group is about cannot be used, or could not be found
// out; it is empty when all is well.

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weight_sync::doctor {

struct Tool {
  std::string name;
  std::string path;     // empty: it is not here
  std::string version;  // as the tool says it, on one line
};

struct Toolchain {
  std::string error;
  std::vector<Tool> tools;  // bazel, g++, clang++, nvcc
};

struct Gpu {
  int ordinal = 0;
  std::string name;
  std::string uuid;  // as nvidia-smi writes it: GPU-...
  int64_t memory_bytes = 0;
  std::string compute_capability;  // "9.0"
};

struct Cuda {
  std::string error;
  std::string library;         // the driver library that was loaded
  std::string driver_version;  // the newest CUDA that it supports: "13.0"
  std::vector<Gpu> gpus;
};

struct Nccl {
  std::string error;
  std::string library;
  std::string version;  // "2.28.9"
};

struct SharedMemory {
  std::string error;  // why a ring of ring_bytes cannot be allocated
  int64_t size_bytes = 0;
  int64_t free_bytes = 0;
  int64_t ring_bytes = 0;      // what one engine's ring takes by default
  int segments = 0;            // entries of this library and this user in /dev/shm
  int leftovers = 0;           // those of them whose process is dead
  int64_t leftover_bytes = 0;  // that these hold
};

struct Endpoints {
  std::string error;   // why no endpoint can be claimed there
  std::string folder;  // of base::DefaultEndpointPath
  bool existed = false;
  int owner = -1;    // user id, -1: it did not exist
  std::string mode;  // octal, "700"
};

struct Processes {
  std::string error;  // why a peer process cannot be watched (pidfd_open)
  std::string kernel;
  std::string pid_namespace;  // as /proc/self/ns/pid has it
  int ptrace_scope = -1;      // of Yama, -1: the kernel has none
  int64_t memlock_bytes = 0;  // soft limits of this process; -1: unlimited
  int64_t open_files = 0;
  int64_t file_size_bytes = 0;
};

struct Loopback {
  std::string error;  // why no connection to a port of 127.0.0.1 can be made
};

struct Environment {
  std::string name;  // safetensors, torch, vllm, sglang, tunix
  std::string version;
  std::string path;
  bool complete = false;  // false: its setup was interrupted
};

struct Package {
  std::string name;
  std::string version;
};

struct Engines {
  std::string error;
  std::string folder;  // where tools/peers/setup keeps environments
  std::vector<Environment> environments;
  std::string python;             // python3 on PATH, empty: none
  std::vector<Package> packages;  // of the engines and their libraries, those that it has
};

struct Findings {
  Toolchain toolchain;
  Cuda cuda;
  Nccl nccl;
  SharedMemory shared_memory;
  Endpoints endpoints;
  Processes processes;
  Loopback loopback;
  Engines engines;
};

}  // namespace weight_sync::doctor

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_DOCTOR_FINDINGS_H_
