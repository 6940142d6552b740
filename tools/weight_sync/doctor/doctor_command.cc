// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/doctor_command.h"

#include <cstdio>
#include <memory>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "tools/weight_sync/doctor/examine.h"
#include "tools/weight_sync/doctor/report.h"
#include "tools/weight_sync/doctor/verdicts.h"

namespace weight_sync::doctor {
namespace {

struct Options {
  bool json = false;
  double timeout_seconds = 30;  // the driver of a machine with many GPUs takes its time to start
};

int Run(const Options& options) {
  const Findings findings = Examine(absl::Seconds(options.timeout_seconds));
  const std::vector<Verdict> verdicts = Judge(findings);
  if (options.json) {
    std::puts(JsonReport(findings, verdicts).c_str());
  } else {
    std::fputs(TextReport(findings, verdicts).c_str(), stdout);
  }
  return Ready(verdicts) ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int* exit_status) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Says what this machine has for weight_sync - build tools, CUDA driver and GPUs, NCCL, "
      "shared "
      "memory, endpoints, limits, engines - and what each transport could do with it, with the fix "
      "for what is missing. Changes nothing.");
  const auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json,
                    "Prints one JSON object and nothing else; its shape is described in "
                    "tools/weight_sync/doctor/report.h");
  command
      ->add_option("--timeout", options->timeout_seconds,
                   "Seconds after which what has not answered is reported as such")
      ->check(CLI::Range(0.001, 3600.0))
      ->option_text("SECONDS  [30]");
  command->footer(
      "Reads WEIGHT_SYNC_LIBCUDA and WEIGHT_SYNC_LIBNCCL (libraries to load in place of the usual "
      "names; for NCCL also vLLM's VLLM_NCCL_SO_PATH), WEIGHT_SYNC_CUDA_PATH (a toolkit with "
      "bin/nvcc), WEIGHT_SYNC_PEERS (the folder of tools/peers/setup).\n"
      "Exit status: 0 the transports of this version (IPC) can run here; 1 something that they "
      "need "
      "is missing, the report says what; 2 wrong usage.");
  command->callback([options, exit_status] { *exit_status = Run(*options); });
}

}  // namespace weight_sync::doctor
