// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the staleness handshake costs: the check before every rollout, the mark after every step,
// and a sync that has next to nothing to move.
//
//   bazel run //benchmarks:handshake
//
// Trainer and engine are two processes on a core each. Options of Google Benchmark pass through.

#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/testing/socket_folder.h"
#include "benchmark/benchmark.h"
#include "benchmarks/cores.h"
#include "benchmarks/states.h"
#include "benchmarks/stopwatch.h"
#include "benchmarks/timings.h"
#include "fakes/engine_process.h"
#include "fakes/seeded_policy.h"
#include "weight_sync/deep_verification.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/factory.h"

namespace weight_sync::benchmarks {
namespace {

constexpr double kCheckGoal = 5e-9;

constexpr char kCheck[] = "is_stale()";
constexpr char kMark[] = "MarkStale()";
constexpr char kRpc[] = "one RPC (the engine's state)";
constexpr char kCommit[] = "link: begin, one bucket of 64 bytes, commit";
constexpr char kSync[] = "SyncWeights() of 64 bytes";

struct Settings {
  int64_t calls = 20'000'000;
  int64_t syncs = 500;
  int repetitions = 9;
  int trainer_core = kTrainerCore;
  int engine_core = kEngineCore;
};
// Every code path, on any machine, in a moment.
constexpr Settings kSmokeSettings = {100, 3, 2, kAnyCore, kAnyCore};

absl::Status Measure(const Settings& settings, bool judge) {
  const base::testing::SocketFolder directory;
  SynchronizerOptions options;
  options.endpoint = directory.endpoint();
  WS_ASSIGN_OR_RETURN(const auto policy, fakes::SeededPolicy::Create(Vectors(1, 64), /*seed=*/5));
  WS_ASSIGN_OR_RETURN(
      const auto engine,
      fakes::EngineProcess::Start({options.endpoint, policy->source().info(), /*faults=*/{},
                                   /*slot_bytes=*/0, settings.engine_core}));
  native::NativeGeneration generation(options.endpoint);
  WS_ASSIGN_OR_RETURN(const auto synchronizer,
                      CreateWeightSynchronizer(options, policy.get(), &generation));
  WS_RETURN_IF_ERROR(synchronizer->InitCommunicator());
  const base::CancelScope scope(base::Deadline::After(absl::Hours(1)));

  const auto add = [&settings](const char* name, int64_t iterations, const auto& body) {
    return ::benchmark::RegisterBenchmark(name, body)
        ->Iterations(iterations)
        ->Repetitions(settings.repetitions);
  };
  // Seconds that `run` itself measures.
  const auto add_timed = [&](const char* name, const std::function<absl::StatusOr<double>()>& run) {
    add(name, settings.syncs, [run](::benchmark::State& state) {
      for (auto _ : state) {
        const absl::StatusOr<double> seconds = run();
        if (!seconds.ok()) return state.SkipWithError(seconds.status().ToString());
        state.SetIterationTime(*seconds);
      }
    })->UseManualTime();
  };
  const auto sync = [&]() -> absl::StatusOr<SyncReport> {
    policy->Step();
    synchronizer->MarkStale();
    return synchronizer->SyncWeights();
  };
  add(kCheck, settings.calls, [&](::benchmark::State& state) {
    for (auto _ : state) ::benchmark::DoNotOptimize(synchronizer->is_stale());
  })->UseRealTime();
  add(kMark, settings.calls, [&](::benchmark::State& state) {
    for (auto _ : state) synchronizer->MarkStale();
  })->UseRealTime();
  add_timed(kRpc, [&]() -> absl::StatusOr<double> {
    const Stopwatch watch;
    WS_RETURN_IF_ERROR(generation.State(scope).status());
    return watch.seconds();
  });
  add_timed(kCommit, [&]() -> absl::StatusOr<double> {
    WS_ASSIGN_OR_RETURN(const SyncReport report, sync());
    return report.transfer_seconds;
  });
  add_timed(kSync, [&]() -> absl::StatusOr<double> {
    WS_ASSIGN_OR_RETURN(const SyncReport report, sync());
    return report.seconds;
  });
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());

  WS_RETURN_IF_ERROR(sync().status());
  WS_ASSIGN_OR_RETURN(const std::vector<NamedDigest> table, generation.TableDigests(scope));
  WS_RETURN_IF_ERROR(CompareTable(policy->source(), table));
  if (!judge) return absl::OkStatus();

  absl::PrintF("\n%-48s %12s %12s\n", "nanoseconds", "best", "median");
  for (const char* name : {kCheck, kMark, kRpc, kCommit, kSync}) {
    if (!timings.has(name)) continue;
    absl::PrintF("%-48s %12.1f %12.1f\n", name, 1e9 * timings.best(name),
                 1e9 * timings.median(name));
  }
  absl::PrintF("\n");
  if (timings.has(kCheck)) {
    PrintGoal(absl::StrFormat("is_stale() takes at most %.0f ns", 1e9 * kCheckGoal),
              timings.best(kCheck) <= kCheckGoal,
              absl::StrFormat("%.1f ns", 1e9 * timings.best(kCheck)));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (const std::optional<int> code = fakes::MaybeRunEngineProcess(argc, argv)) return *code;
  CLI::App app("Measures the staleness handshake.");
  bool smoke = false;
  app.add_flag("--smoke", smoke, "few iterations, no verdict on speed");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  const Settings settings = smoke ? kSmokeSettings : Settings();
  absl::Status status = PinThisThread(settings.trainer_core);
  if (status.ok()) status = Measure(settings, /*judge=*/!smoke);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
