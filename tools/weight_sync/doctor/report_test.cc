// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/report.h"

#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/weight_sync/doctor/findings.h"
#include "tools/weight_sync/doctor/verdicts.h"

namespace weight_sync::doctor {
namespace {

Findings LargeMachine() {
  Findings out;
  out.toolchain.tools = {{"bazel", "/usr/bin/bazel", "bazel 4.2.3"}, {"nvcc", "", ""}};
  out.cuda.library = "/usr/lib/libcuda.so.1";
  out.cuda.driver_version = "13.0";
  out.cuda.gpus = {{0, "Test GPU", "GPU-1", int64_t{80} << 30, "9.0"}};
  out.nccl.library = "/nccl/libnccl.so.2";
  out.nccl.version = "2.28.9";
  out.shared_memory.size_bytes = int64_t{64} << 30;
  out.shared_memory.free_bytes = int64_t{63} << 30;
  out.shared_memory.ring_bytes = 4 << 20;
  out.shared_memory.segments = 3;
  out.shared_memory.leftovers = 1;
  out.shared_memory.leftover_bytes = 4096;
  out.endpoints = {"", "/tmp/weight_sync-7", true, 7, "700"};
  out.processes = {"", "6.1.0", "pid:[1]", 1, 8 << 20, 1024, -1};
  out.engines.folder = "/peers";
  out.engines.environments = {{"vllm", "0.32.0-1", "/peers/vllm-0.32.0-1", true},
                              {"tunix", "0.1.7-1", "/peers/tunix-0.1.7-1", false}};
  out.engines.python = "/usr/bin/python3";
  out.engines.packages = {{"vllm", "0.32.0"}, {"torch", "2.13.0"}};
  return out;
}

TEST(TextReportTest, OfALargeMachine) {
  const Findings findings = LargeMachine();
  EXPECT_EQ(TextReport(findings, Judge(findings)), R"(Build
  bazel         bazel 4.2.3  /usr/bin/bazel
  nvcc          not found

Devices
  CUDA driver   for CUDA 13.0  /usr/lib/libcuda.so.1
  GPU 0         Test GPU, 80.0 GiB, sm_90  GPU-1
  NCCL          2.28.9  /nccl/libnccl.so.2

Machine
  /dev/shm      64.0 GiB, 63.0 GiB free
  ring          4.0 MiB an engine by default: could be allocated
  segments      2 in use, 1 left behind by dead processes (4096 bytes); the next trainer or engine
                that starts removes them
  endpoints     /tmp/weight_sync-7, mode 700
  processes     can be watched by pidfd; pid:[1], ptrace scope 1, Linux 6.1.0
  limits        locked memory 8.0 MiB, open files 1024, file size unlimited
  loopback      a port of 127.0.0.1 can be served

Engines and peers
  vllm          0.32.0-1  /peers/vllm-0.32.0-1
  tunix         0.1.7-1  /peers/tunix-0.1.7-1  (incomplete: run tools/peers/setup)
  python3       vllm 0.32.0, torch 2.13.0  /usr/bin/python3

Transports
  IPC           colocated vLLM        works         between this library's two ends; a stock vLLM server is no engine of it yet
  NCCL          non-colocated vLLM    not yet       this machine is ready, this version is not
  HTTP          colocated SGLang      not yet       this machine is ready, this version is not
  none          non-colocated SGLang  no transport  colocate trainer and engine
)");
}

TEST(TextReportTest, OfAMachineThatHasNothing) {
  Findings findings;
  findings.toolchain.error = "no tools";
  findings.cuda.error = "no driver";
  findings.nccl.error = "no library";
  findings.shared_memory.error = "no room";
  findings.endpoints.error = "not mine";
  findings.processes.error = "cannot watch";
  findings.loopback.error = "no port";
  findings.engines.error = "no answer";
  EXPECT_EQ(TextReport(findings, Judge(findings)), R"(Build
  problem       no tools

Devices
  CUDA driver   none: no driver
  NCCL          none: no library

Machine
  /dev/shm      0 bytes, 0 bytes free
  ring          no room
  segments      0 in use, none left behind
  endpoints     not mine
  processes     cannot watch
  limits        locked memory 0 bytes, open files 0, file size 0 bytes
  loopback      no port

Engines and peers
  environments  none; set WEIGHT_SYNC_PEERS, XDG_CACHE_HOME or HOME
  python3       not found
  problem       no answer

Transports
  IPC           colocated vLLM        missing       shared memory: mount a larger tmpfs on /dev/shm (a container: --shm-size=1g)
  IPC           colocated vLLM        missing       endpoint folder: make the folder this user's own with mode 700, or set SynchronizerOptions::endpoint
  IPC           colocated vLLM        missing       watching a peer process: use Linux 5.3 or newer, and let the container's seccomp profile allow pidfd_open
  NCCL          non-colocated vLLM    missing       CUDA driver: install the NVIDIA driver, or name its libcuda.so.1 by WEIGHT_SYNC_LIBCUDA (and not in this version)
  NCCL          non-colocated vLLM    missing       NCCL: name the engine's libnccl.so.2 by WEIGHT_SYNC_LIBNCCL (in its Python environment: nvidia/nccl/lib) (and not in this version)
  HTTP          colocated SGLang      missing       loopback port: bring the interface up (ip link set lo up) (and not in this version)
  none          non-colocated SGLang  no transport  colocate trainer and engine
)");
}

TEST(JsonReportTest, HasTheDocumentedShape) {
  Findings findings = LargeMachine();
  findings.shared_memory.error = "no room";
  const auto report = nlohmann::json::parse(JsonReport(findings, Judge(findings)));
  const auto expected = nlohmann::json::parse(R"({
    "format": 1,
    "ready": false,
    "toolchain": {"error": "", "tools": [
      {"name": "bazel", "path": "/usr/bin/bazel", "version": "bazel 4.2.3"},
      {"name": "nvcc", "path": "", "version": ""}]},
    "cuda": {"error": "", "library": "/usr/lib/libcuda.so.1", "driver_version": "13.0", "gpus": [
      {"ordinal": 0, "name": "Test GPU", "uuid": "GPU-1", "memory_bytes": 85899345920,
       "compute_capability": "9.0"}]},
    "nccl": {"error": "", "library": "/nccl/libnccl.so.2", "version": "2.28.9"},
    "shared_memory": {"error": "no room", "size_bytes": 68719476736, "free_bytes": 67645734912,
      "ring_bytes": 4194304, "segments": 3, "leftovers": 1, "leftover_bytes": 4096},
    "endpoints": {"error": "", "folder": "/tmp/weight_sync-7", "existed": true, "owner": 7,
      "mode": "700"},
    "processes": {"error": "", "kernel": "6.1.0", "pid_namespace": "pid:[1]", "ptrace_scope": 1,
      "memlock_bytes": 8388608, "open_files": 1024, "file_size_bytes": -1},
    "loopback": {"error": ""},
    "engines": {"error": "", "folder": "/peers", "python": "/usr/bin/python3", "environments": [
      {"name": "vllm", "version": "0.32.0-1", "path": "/peers/vllm-0.32.0-1", "complete": true},
      {"name": "tunix", "version": "0.1.7-1", "path": "/peers/tunix-0.1.7-1", "complete": false}],
      "packages": [{"name": "vllm", "version": "0.32.0"}, {"name": "torch", "version": "2.13.0"}]}
  })");
  auto without_transports = report;
  without_transports.erase("transports");
  EXPECT_EQ(without_transports, expected) << report.dump(2);

  ASSERT_EQ(report["transports"].size(), 4u);
  const auto& ipc = report["transports"][0];
  EXPECT_EQ(ipc["topology"], "colocated vLLM");
  EXPECT_EQ(ipc["transport"], "IPC");
  EXPECT_EQ(ipc["in_this_version"], true);
  EXPECT_EQ(ipc["ability"], "missing");
  EXPECT_TRUE(ipc["note"].is_string());
  ASSERT_EQ(ipc["lacks"].size(), 1u);
  EXPECT_EQ(ipc["lacks"][0]["what"], "shared memory");
  EXPECT_EQ(ipc["lacks"][0]["why"], "no room");
  EXPECT_TRUE(ipc["lacks"][0]["fix"].is_string());
  EXPECT_EQ(report["transports"][1]["ability"], "not_in_this_version");
  EXPECT_EQ(report["transports"][3]["ability"], "no_transport");
}

}  // namespace
}  // namespace weight_sync::doctor
