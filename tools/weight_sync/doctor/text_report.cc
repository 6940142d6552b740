// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tools/common/page.h"
#include "tools/weight_sync/doctor/report.h"

namespace weight_sync::doctor {
namespace {

using tools::Page;

std::string Size(int64_t bytes) {
  if (bytes < 0) return "unlimited";
  if (bytes >= int64_t{1} << 30) {
    return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  }
  if (bytes >= int64_t{1} << 20) {
    return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  }
  return absl::StrFormat("%d bytes", bytes);
}

std::string Count(int64_t count) { return count < 0 ? "unlimited" : absl::StrCat(count); }

// What is well, or the error in its place.
absl::string_view OrError(const std::string& error, absl::string_view text) {
  return error.empty() ? text : error;
}

void Build(Page& page, const Toolchain& toolchain) {
  page.Title("Build");
  for (const Tool& tool : toolchain.tools) {
    page.Fact(tool.name,
              tool.path.empty() ? "not found" : absl::StrCat(tool.version, "  ", tool.path));
  }
  if (!toolchain.error.empty()) page.Fact("problem", toolchain.error);
}

void Devices(Page& page, const Findings& findings) {
  page.Title("Devices");
  const Cuda& cuda = findings.cuda;
  if (!cuda.library.empty()) {
    page.Fact("CUDA driver", absl::StrCat("for CUDA ", cuda.driver_version, "  ", cuda.library));
  }
  for (const Gpu& gpu : cuda.gpus) {
    page.Fact(
        absl::StrCat("GPU ", gpu.ordinal),
        absl::StrCat(gpu.name, ", ", Size(gpu.memory_bytes), ", sm_",
                     absl::StrReplaceAll(gpu.compute_capability, {{".", ""}}), "  ", gpu.uuid));
  }
  if (!cuda.error.empty()) {
    page.Fact(cuda.library.empty() ? "CUDA driver" : "GPU", absl::StrCat("none: ", cuda.error));
  }
  const Nccl& nccl = findings.nccl;
  page.Fact("NCCL", nccl.error.empty() ? absl::StrCat(nccl.version, "  ", nccl.library)
                                       : absl::StrCat("none: ", nccl.error));
}

void Machine(Page& page, const Findings& findings) {
  page.Title("Machine");
  const SharedMemory& memory = findings.shared_memory;
  page.Fact("/dev/shm",
            absl::StrCat(Size(memory.size_bytes), ", ", Size(memory.free_bytes), " free"));
  page.Fact("ring",
            OrError(memory.error, absl::StrCat(Size(memory.ring_bytes),
                                               " an engine by default: could be allocated")));
  page.Fact("segments",
            memory.leftovers == 0
                ? absl::StrCat(memory.segments, " in use, none left behind")
                : absl::StrCat(memory.segments - memory.leftovers, " in use, ", memory.leftovers,
                               " left behind by dead processes (", Size(memory.leftover_bytes),
                               "); the next trainer or engine that starts removes them"));
  const Endpoints& endpoints = findings.endpoints;
  page.Fact("endpoints",
            OrError(endpoints.error,
                    absl::StrCat(endpoints.folder, endpoints.existed
                                                       ? absl::StrCat(", mode ", endpoints.mode)
                                                       : ", made when needed")));
  const Processes& processes = findings.processes;
  page.Fact("processes",
            OrError(processes.error,
                    absl::StrCat(
                        "can be watched by pidfd; ", processes.pid_namespace, ", ptrace scope ",
                        processes.ptrace_scope < 0 ? "none" : absl::StrCat(processes.ptrace_scope),
                        ", Linux ", processes.kernel)));
  page.Fact("limits", absl::StrCat("locked memory ", Size(processes.memlock_bytes), ", open files ",
                                   Count(processes.open_files), ", file size ",
                                   Size(processes.file_size_bytes)));
  page.Fact("loopback", OrError(findings.loopback.error, "a port of 127.0.0.1 can be served"));
}

void EngineList(Page& page, const Engines& engines) {
  page.Title("Engines and peers");
  for (const Environment& one : engines.environments) {
    page.Fact(one.name, absl::StrCat(one.version, "  ", one.path,
                                     one.complete ? "" : "  (incomplete: run tools/peers/setup)"));
  }
  if (engines.environments.empty()) {
    page.Fact("environments",
              engines.folder.empty()
                  ? "none; set WEIGHT_SYNC_PEERS, XDG_CACHE_HOME or HOME"
                  : absl::StrCat("none in ", engines.folder, "; tools/peers/setup builds them"));
  }
  page.Fact("python3",
            engines.python.empty()
                ? "not found"
                : absl::StrCat(engines.packages.empty()
                                   ? "no engine"
                                   : absl::StrJoin(engines.packages, ", ",
                                                   [](std::string* out, const Package& package) {
                                                     absl::StrAppend(out, package.name, " ",
                                                                     package.version);
                                                   }),
                               "  ", engines.python));
  if (!engines.error.empty()) page.Fact("problem", engines.error);
}

std::string WordOf(Ability ability) {
  switch (ability) {
    case Ability::kWorks:
      return "works";
    case Ability::kNotInThisVersion:
      return "not yet";
    case Ability::kMissing:
      return "missing";
    case Ability::kNoTransport:
      return "no transport";
  }
  return "";
}

void Transports(Page& page, const std::vector<Verdict>& verdicts) {
  page.Title("Transports");
  for (const Verdict& verdict : verdicts) {
    const auto line = [&](absl::string_view word, absl::string_view text) {
      page.Line(verdict.transport, absl::StrFormat("%-21s %-13s %s", verdict.topology, word, text));
    };
    for (const Lack& lack : verdict.lacks) {
      line(WordOf(verdict.ability),
           absl::StrCat(lack.what, ": ", lack.fix,
                        verdict.in_this_version ? "" : " (and not in this version)"));
    }
    if (verdict.lacks.empty()) {
      line(WordOf(verdict.ability), verdict.ability == Ability::kNotInThisVersion
                                        ? "this machine is ready, this version is not"
                                        : verdict.note);
    }
  }
}

}  // namespace

std::string TextReport(const Findings& findings, const std::vector<Verdict>& verdicts) {
  Page page;
  Build(page, findings.toolchain);
  Devices(page, findings);
  Machine(page, findings);
  EngineList(page, findings.engines);
  Transports(page, verdicts);
  return page.text();
}

}  // namespace weight_sync::doctor
