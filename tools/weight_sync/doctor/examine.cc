// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/examine.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "nlohmann/json.hpp"
#include "tools/weight_sync/doctor/cuda_probe.h"
#include "tools/weight_sync/doctor/endpoints_probe.h"
#include "tools/weight_sync/doctor/engines_probe.h"
#include "tools/weight_sync/doctor/findings_json.h"
#include "tools/weight_sync/doctor/isolated.h"
#include "tools/weight_sync/doctor/loopback_probe.h"
#include "tools/weight_sync/doctor/nccl_probe.h"
#include "tools/weight_sync/doctor/processes_probe.h"
#include "tools/weight_sync/doctor/shared_memory_probe.h"
#include "tools/weight_sync/doctor/toolchain_probe.h"

namespace weight_sync::doctor {
namespace {

// What a child process runs, and what its parent does with the answer.
class Examination {
 public:
  template <typename Group>
  void Add(Group (*probe)(), Group* out) {
    probes_.push_back([probe] {
      // A path may have bytes that are no UTF-8.
      return nlohmann::json(probe()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    });
    takers_.push_back([out](const absl::StatusOr<std::string>& answer) {
      if (answer.ok()) {
        *out = nlohmann::json::parse(*answer).get<Group>();
      } else {
        out->error = std::string(answer.status().message());
      }
    });
  }

  void Run(absl::Duration timeout) {
    const auto answers = RunIsolated(probes_, base::Deadline::After(timeout));
    for (size_t i = 0; i < answers.size(); ++i) takers_[i](answers[i]);
  }

 private:
  std::vector<std::function<std::string()>> probes_;
  std::vector<std::function<void(const absl::StatusOr<std::string>&)>> takers_;
};

}  // namespace

Findings Examine(absl::Duration timeout) {
  Findings out;
  Examination examination;
  examination.Add(ProbeToolchain, &out.toolchain);
  examination.Add(ProbeCuda, &out.cuda);
  examination.Add(ProbeNccl, &out.nccl);
  examination.Add(ProbeSharedMemory, &out.shared_memory);
  examination.Add(ProbeEndpoints, &out.endpoints);
  examination.Add(ProbeProcesses, &out.processes);
  examination.Add(ProbeLoopback, &out.loopback);
  examination.Add(ProbeEngines, &out.engines);
  examination.Run(timeout);
  return out;
}

}  // namespace weight_sync::doctor
