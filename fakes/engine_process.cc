// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/engine_process.h"

#include <sched.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "fakes/engine_host.h"
#include "nlohmann/json.hpp"
#include "refit/refit_info_json.h"

namespace weight_sync::fakes {
namespace {

constexpr char kRole[] = "--fake-engine";
constexpr char kReady[] = "ready";

absl::StatusOr<std::unique_ptr<EngineHost>> StartHost(const std::string& config) {
  const nlohmann::json value = nlohmann::json::parse(config);
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info,
                      refit::RefitInfoFromJson(value.at("info").get<std::string>()));
  WS_ASSIGN_OR_RETURN(std::vector<EngineFault> faults,
                      FaultsFromJson(value.at("faults").get<std::string>()));
  if (const int cpu = value.at("cpu").get<int>(); cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("pinning to core ", cpu));
    }
  }
  ipc::IpcConsumerOptions options;
  options.slot_bytes = value.at("slot_bytes").get<int64_t>();
  return EngineHost::Start(value.at("endpoint").get<std::string>(), info, std::move(faults),
                           options);
}

}  // namespace

absl::StatusOr<EngineProcess> EngineProcess::Start(const EngineProcessOptions& options) {
  WS_ASSIGN_OR_RETURN(const std::string info, refit::RefitInfoToJson(options.info));
  const nlohmann::json config = {{"endpoint", options.endpoint},
                                 {"info", info},
                                 {"faults", FaultsToJson(options.faults)},
                                 {"slot_bytes", options.slot_bytes},
                                 {"cpu", options.cpu}};
  WS_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(kRole, config.dump()));
  WS_ASSIGN_OR_RETURN(const std::string report,
                      process.ReadLine(base::Deadline::After(absl::Minutes(2))));
  if (report != kReady) return absl::UnavailableError(absl::StrCat("engine process: ", report));
  return EngineProcess(std::move(process));
}

std::optional<int> MaybeRunEngineProcess(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != kRole) return std::nullopt;
  absl::StatusOr<std::unique_ptr<EngineHost>> host = StartHost(ChildConfig());
  if (!host.ok()) {
    ReportLine(host.status().ToString());
    return 1;
  }
  ReportLine(kReady);
  WaitForParent();
  return 0;
}

}  // namespace weight_sync::fakes
