// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/verdicts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"

namespace weight_sync::doctor {
namespace {

void Need(Verdict& verdict, const std::string& error, const std::string& what,
          const std::string& fix) {
  if (!error.empty()) verdict.lacks.push_back({what, error, fix});
}

Verdict Decided(Verdict verdict) {
  verdict.ability = !verdict.lacks.empty()    ? Ability::kMissing
                    : verdict.in_this_version ? Ability::kWorks
                                              : Ability::kNotInThisVersion;
  return verdict;
}

Verdict JudgeIpc(const Findings& findings) {
  Verdict out;
  out.topology = "colocated vLLM";
  out.transport = "IPC";
  out.in_this_version = true;
  out.note = "between this library's two ends; a stock vLLM server is no engine of it yet";
  const int64_t file_size = findings.processes.file_size_bytes;
  const bool limited = file_size >= 0 && file_size < findings.shared_memory.ring_bytes;
  Need(out, findings.shared_memory.error, "shared memory",
       limited ? "lift the limit of file sizes (ulimit -f unlimited)"
               : "mount a larger tmpfs on /dev/shm (a container: --shm-size=1g)");
  Need(out, findings.endpoints.error, "endpoint folder",
       "make the folder this user's own with mode 700, or set SynchronizerOptions::endpoint");
  Need(out, findings.processes.error, "watching a peer process",
       "use Linux 5.3 or newer, and let the container's seccomp profile allow pidfd_open");
  return Decided(std::move(out));
}

Verdict JudgeNccl(const Findings& findings) {
  Verdict out;
  out.topology = "non-colocated vLLM";
  out.transport = "NCCL";
  // Without its library there is no driver; with it, it is the GPUs that are missing.
  if (findings.cuda.library.empty()) {
    Need(out, findings.cuda.error, "CUDA driver",
         "install the NVIDIA driver, or name its libcuda.so.1 by WEIGHT_SYNC_LIBCUDA");
  } else {
    Need(out, findings.cuda.error, "GPU",
         "see whether nvidia-smi shows one, and whether CUDA_VISIBLE_DEVICES hides it");
  }
  Need(out, findings.nccl.error, "NCCL",
       "name the engine's libnccl.so.2 by WEIGHT_SYNC_LIBNCCL (in its Python environment: "
       "nvidia/nccl/lib)");
  return Decided(std::move(out));
}

Verdict JudgeHttp(const Findings& findings) {
  Verdict out;
  out.topology = "colocated SGLang";
  out.transport = "HTTP";
  Need(out, findings.loopback.error, "loopback port", "bring the interface up (ip link set lo up)");
  return Decided(std::move(out));
}

}  // namespace

std::vector<Verdict> Judge(const Findings& findings) {
  Verdict none;
  none.topology = "non-colocated SGLang";
  none.transport = "none";
  none.ability = Ability::kNoTransport;
  none.note = "colocate trainer and engine";
  return {JudgeIpc(findings), JudgeNccl(findings), JudgeHttp(findings), none};
}

bool Ready(const std::vector<Verdict>& verdicts) {
  return absl::c_all_of(verdicts, [](const Verdict& verdict) {
    return !verdict.in_this_version || verdict.ability == Ability::kWorks;
  });
}

}  // namespace weight_sync::doctor
