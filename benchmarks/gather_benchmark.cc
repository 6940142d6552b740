// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How fast rank 0 gathers a sharded trainer's weights into a transport's slots, beside a memcpy of as
// many bytes and beside torch on gloo, in one run:
//
//   bazel run //benchmarks:gather
//
// Four ranks, a process each, theirs and torch's alike: rank 0 on one core, the others on the rest.
// Over processes each byte that rank 0 lacks is copied twice, by its rank into a message and by rank
// 0 out of it. torch needs tools/peers/setup torch; without it its rows are left out. Its
// full_tensor() makes the weights whole on every rank, since it knows no other way; its gather() to
// rank 0 alone, with a copy into place, is the like of ours. Repetitions are interleaved at random,
// since a machine's speed drifts; a ratio holds only within one run. Every byte that came is compared
// before and after. Options of Google Benchmark pass through.

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "benchmarks/cores.h"
#include "benchmarks/plain_copies.h"
#include "benchmarks/sharded_ranks.h"
#include "benchmarks/states.h"
#include "benchmarks/timings.h"
#include "benchmarks/torch_peer.h"
#include "fakes/parameters.h"

namespace weight_sync::benchmarks {
namespace {

constexpr double kLocalGoal = 0.7;
constexpr double kTorchGoal = 2;

constexpr const char* kMemcpy = PlainCopies::kMemcpy;
constexpr const char* kPlain = PlainCopies::kPlain;
constexpr char kMemcpyIntoSlots[] = "memcpy into such slots";
constexpr char kLocal[] = "boxes of one process";
constexpr char kFullTensor[] = "torch, full_tensor() to all ranks";
constexpr char kTorchGather[] = "torch, gather() to rank 0";

struct Settings {
  ShardedWeights weights = {2, 4096, 8192};  // 256 MiB
  int64_t slot_bytes = 4 << 20;
  int repetitions = 11;
  int core = kTrainerCore;
};
// Every code path, in a moment.
constexpr Settings kSmokeSettings = {{2, 24, 40}, 1024, 2, kAnyCore};

struct Gathering {
  std::string name;
  std::unique_ptr<ShardedRanks> ranks;
};

absl::Status Measure(const Settings& settings, bool judge) {
  const int64_t bytes = settings.weights.bytes();
  // First of all what keeps off this thread's core, which it could not once the thread is pinned.
  absl::StatusOr<TorchPeer> torch =
      TorchPeer::Start({"benchmarks/torch_gather_peer.py", absl::StrCat(settings.core)});
  if (!torch.ok() && !absl::IsNotFound(torch.status())) return torch.status();
  std::vector<Gathering> gatherings;
  for (const auto& [name, meeting] : {std::pair(kLocal, Meeting::kAlone),
                                      {"over shared memory", Meeting::kSharedMemory},
                                      {"over TCP, loopback", Meeting::kTcp}}) {
    WS_ASSIGN_OR_RETURN(auto ranks, ShardedRanks::Start(meeting, settings.weights,
                                                        settings.slot_bytes, settings.core));
    gatherings.push_back({name, std::move(ranks)});
  }
  WS_RETURN_IF_ERROR(PinThisThread(settings.core));
  const auto verify = [&]() -> absl::Status {
    for (const Gathering& gathering : gatherings) {
      WS_RETURN_IF_ERROR(base::Prefixed(gathering.name, gathering.ranks->Verify()));
    }
    return absl::OkStatus();
  };
  WS_RETURN_IF_ERROR(verify());

  WS_ASSIGN_OR_RETURN(fakes::Parameters from, fakes::Parameters::Create(Vectors(1, bytes)));
  WS_ASSIGN_OR_RETURN(fakes::Parameters to, fakes::Parameters::Create(Vectors(1, bytes)));
  from.FillSeeded(1);
  const PlainCopies plain_copies(from.view(0).data(), to.view(0).data(), bytes, {});
  plain_copies.Register(settings.repetitions, torch.ok() ? &*torch : nullptr);
  plain_copies.RegisterInSlots(kMemcpyIntoSlots, settings.slot_bytes, ShardedRanks::kSlots,
                               settings.repetitions);
  for (const Gathering& gathering : gatherings) {
    RegisterTimed(gathering.name, settings.repetitions,
                  [&ranks = *gathering.ranks] { return ranks.Gather(); });
  }
  if (torch.ok()) {
    const std::string sizes =
        absl::StrCat(" ", settings.weights.layers, " ", settings.weights.hidden, " ",
                     settings.weights.intermediate);
    for (const auto& [name, operation] :
         {std::pair(kFullTensor, "full_tensor"), {kTorchGather, "gather"}}) {
      RegisterTimed(name, settings.repetitions,
                    [&torch, line = operation + sizes] { return torch->Run(line); });
    }
  }
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());
  WS_RETURN_IF_ERROR(verify());
  if (!judge) return absl::OkStatus();

  // How many times as fast as `other`; nothing where --benchmark_filter left one out.
  const auto times = [&](const std::string& name, const std::string& other) {
    return timings.has(name) && timings.has(other)
               ? std::optional<double>(timings.best(other) / timings.best(name))
               : std::nullopt;
  };
  const auto shown = [](std::optional<double> figure) {
    return figure.has_value() ? absl::StrFormat("%.2f", *figure) : std::string();
  };
  absl::PrintF("\n%d MiB from %d ranks into slots of %d KiB\n", bytes >> 20, ShardedRanks::kRanks,
               settings.slot_bytes / 1024);
  absl::PrintF("%-36s %6s %6s %11s %14s %12s %9s\n", "GB/s (1e9 bytes)", "best", "median",
               "of memcpy", "of it in slots", "full_tensor", "gather");
  const auto row = [&](const std::string& name) {
    if (!timings.has(name)) return;
    const double total = static_cast<double>(bytes) / 1e9;
    absl::PrintF("%-36s %6.2f %6.2f %11s %14s %12s %9s\n", name, total / timings.best(name),
                 total / timings.median(name), shown(times(name, kMemcpy)),
                 shown(times(name, kMemcpyIntoSlots)), shown(times(name, kFullTensor)),
                 shown(times(name, kTorchGather)));
  };
  for (const char* name : {kMemcpy, kMemcpyIntoSlots, kPlain}) row(name);
  row(absl::StrCat(kPlain, PlainCopies::kTorch));
  for (const Gathering& gathering : gatherings) row(gathering.name);
  row(kFullTensor);
  row(kTorchGather);
  absl::PrintF(
      "\n%s. full_tensor() makes the weights whole on all ranks, the others on rank 0. Over "
      "processes a byte is copied twice. Every byte was verified.\n\n",
      torch.ok() ? absl::StrCat("torch ", torch->version(), " on gloo")
                 : absl::StrCat("Without torch: ", torch.status().message()));

  if (const auto share = times(kLocal, kMemcpy)) {
    PrintGoal(absl::StrFormat("%s: at least %.1f of a memcpy", kLocal, kLocalGoal),
              *share >= kLocalGoal, absl::StrFormat("%.2f", *share));
  }
  for (const Gathering& gathering : gatherings) {
    if (gathering.name == kLocal) continue;
    if (const auto faster = times(gathering.name, kFullTensor)) {
      PrintGoal(absl::StrFormat("%s: at least %.0f times torch's full_tensor() on gloo",
                                gathering.name, kTorchGoal),
                *faster >= kTorchGoal, absl::StrFormat("%.1f", *faster));
    }
  }
  return plain_copies.CheckQuiet(timings);
}

int Main(int argc, char** argv) {
  if (const std::optional<int> code = MaybeRunRank(argc, argv)) return *code;
  CLI::App app("Measures how fast rank 0 gathers sharded weights, beside memcpy and torch.");
  bool smoke = false;
  Settings settings;
  app.add_flag("--smoke", smoke, "tiny sizes, bytes verified, no verdict on speed");
  app.add_option("--repetitions", settings.repetitions)->check(CLI::PositiveNumber);
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (smoke) settings = kSmokeSettings;
  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  const absl::Status status = Measure(settings, /*judge=*/!smoke);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
