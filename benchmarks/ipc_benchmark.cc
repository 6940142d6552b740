// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How fast the IPC transport is, beside the limits of this machine, in one run:
//
//   bazel run //benchmarks:ipc                  memory copies, a bare two-copy loop, the transport
//   bazel run //benchmarks:ipc -- --sweep       slots and their size, to choose the ring's defaults
//
// Trainer and engine are two processes on a core each. Repetitions are interleaved at random, since
// a machine's speed drifts; a ratio holds only within one run. The engine's whole table is compared
// before and after the timed syncs, and every element changes in between. Options of Google
// Benchmark pass through, such as --benchmark_out=FILE. On a machine that is not idle, figures mean
// something only under "chrt -f 10" (root): the two processes then have their cores for themselves.

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "benchmarks/bare_loop.h"
#include "benchmarks/cores.h"
#include "benchmarks/memory_copy.h"
#include "benchmarks/ring_sweep.h"
#include "benchmarks/states.h"
#include "benchmarks/sync_pair.h"
#include "benchmarks/timings.h"
#include "fakes/engine_process.h"
#include "weight_sync/options.h"

namespace weight_sync::benchmarks {
namespace {

// Below this share of a memory copy something else was using the machine, or it has no second core.
constexpr double kLeastBareShare = 0.65;
constexpr double kBareShareGoal = 0.65;
constexpr double kDigestCostGoal = 0.25;
constexpr double kTensorGoal = 200e-9;

constexpr char kOneThread[] = "memcpy, 1 thread";
constexpr char kTwoThreads[] = "memcpy, 2 threads";
constexpr char kBare[] = "bare two-copy loop";
constexpr char kOff[] = ", digests off";
constexpr char kOn[] = ", digests on";
constexpr char kManyTiny[] = "many tiny tensors, digests off";
constexpr char kOneTiny[] = "their bytes in one tensor, digests off";

struct Sizes {
  int64_t copy = 1 << 30;
  int layers = 28;
  int64_t vocabulary = 151'936;
  int expert_layers = 29;
  int experts = 128;
  int64_t one_tensor = 512 << 20;
  int tiny_tensors = 20'000;
  int tiny_syncs = 20;  // a repetition
  int repetitions = 11;
  int trainer_core = kTrainerCore;
  int engine_core = kEngineCore;
};

// Every code path, on any machine, in a moment.
constexpr Sizes kSmokeSizes = {
    3'000'002, 1, 1000, 1, 8, 5 << 20, 300, 2, 2, kAnyCore, kAnyCore,
};

struct State {
  std::string name;
  std::unique_ptr<SyncPair> pair;
};

// Connected, synced both ways and found equal; then every element changes, so that what is verified
// at the end came with a timed sync.
absl::StatusOr<std::unique_ptr<SyncPair>> StartPair(const refit::RefitInfo& info,
                                                    const ipc::RingLayout& ring,
                                                    const Sizes& sizes) {
  WS_ASSIGN_OR_RETURN(auto pair, SyncPair::Start(info, sizes.engine_core));
  WS_RETURN_IF_ERROR(pair->Connect(ring));
  for (const bool wire_digests : {false, true}) {
    WS_RETURN_IF_ERROR(pair->Sync(wire_digests).status());
    WS_RETURN_IF_ERROR(pair->Verify());
    pair->Step();
  }
  return pair;
}

class Table {
 public:
  explicit Table(const Timings& timings) : timings_(timings) {
    absl::PrintF("\n%-48s %6s %6s   %s\n", "GB/s (1e9 bytes)", "best", "median",
                 "of bare  of memcpy");
  }

  // Nothing for what --benchmark_filter left out.
  void Row(const std::string& name, int64_t bytes) {
    if (!timings_.has(name)) return;
    rates_[name] = Rate(bytes, timings_.best(name));
    absl::PrintF("%-48s %6.2f %6.2f", name, rates_[name], Rate(bytes, timings_.median(name)));
    for (const char* limit : {kBare, kOneThread}) {
      const std::optional<double> part = share(name, limit);
      absl::PrintF("   %6s", part.has_value() ? absl::StrFormat("%.0f %%", 100 * *part) : "");
    }
    absl::PrintF("\n");
  }

  std::optional<double> share(const std::string& name, const std::string& of) const {
    if (rates_.count(name) == 0 || rates_.count(of) == 0) return std::nullopt;
    return rates_.at(name) / rates_.at(of);
  }

 private:
  static double Rate(int64_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds / 1e9;
  }

  const Timings& timings_;
  std::map<std::string, double> rates_;
};

absl::Status MeasureAll(const Sizes& sizes, bool judge) {
  const SynchronizerOptions defaults;
  const ipc::RingLayout ring{defaults.ring_slots, defaults.ring_slot_bytes};
  WS_ASSIGN_OR_RETURN(MemoryCopy copy, MemoryCopy::Create(sizes.copy));
  WS_ASSIGN_OR_RETURN(auto bare, BareLoop::Start(sizes.copy, ring, sizes.engine_core));
  copy.OneThread();
  bare->Run();
  std::vector<State> states;
  const std::pair<std::string, refit::RefitInfo> wanted[] = {
      {"dense", Qwen3Dense(sizes.layers, sizes.vocabulary)},
      {"experts of 48 KiB", SmallExperts(sizes.expert_layers, sizes.experts)},
      {"one tensor", Vectors(1, sizes.one_tensor)},
  };
  for (const auto& [name, info] : wanted) {
    WS_ASSIGN_OR_RETURN(auto pair, StartPair(info, ring, sizes));
    states.push_back({absl::StrFormat("%s (%d, %.2f GB)", name, info.size(),
                                      static_cast<double>(info.total_bytes()) / 1e9),
                      std::move(pair)});
  }
  constexpr int64_t kTinyBytes = 64;
  WS_ASSIGN_OR_RETURN(auto many_tiny,
                      StartPair(Vectors(sizes.tiny_tensors, kTinyBytes), ring, sizes));
  WS_ASSIGN_OR_RETURN(auto one_tiny,
                      StartPair(Vectors(1, sizes.tiny_tensors * kTinyBytes), ring, sizes));

  RegisterTimed(kOneThread, sizes.repetitions, [&] { return copy.OneThread(); });
  RegisterTimed(kTwoThreads, sizes.repetitions, [&] { return copy.TwoThreads(sizes.engine_core); });
  RegisterTimed(kBare, sizes.repetitions, [&] { return bare->Run(); });
  for (const State& state : states) {
    RegisterTimed(state.name + kOff, sizes.repetitions,
                  [&state] { return state.pair->Sync(false); });
    RegisterTimed(state.name + kOn, sizes.repetitions, [&state] { return state.pair->Sync(true); });
  }
  RegisterTimed(
      kManyTiny, sizes.repetitions, [&] { return many_tiny->Sync(false); }, sizes.tiny_syncs);
  RegisterTimed(
      kOneTiny, sizes.repetitions, [&] { return one_tiny->Sync(false); }, sizes.tiny_syncs);
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());

  if (!copy.equal()) return absl::DataLossError("a memory copy differs from its source");
  WS_RETURN_IF_ERROR(bare->Verify());
  for (const State& state : states) {
    if (!timings.has(state.name + kOff) && !timings.has(state.name + kOn)) continue;
    WS_RETURN_IF_ERROR(base::Prefixed(state.name, state.pair->Verify()));
  }
  if (timings.has(kManyTiny)) WS_RETURN_IF_ERROR(base::Prefixed(kManyTiny, many_tiny->Verify()));
  if (timings.has(kOneTiny)) WS_RETURN_IF_ERROR(base::Prefixed(kOneTiny, one_tiny->Verify()));
  if (!judge) return absl::OkStatus();

  Table table(timings);
  table.Row(kOneThread, copy.bytes());
  table.Row(kTwoThreads, copy.bytes());
  table.Row(kBare, bare->bytes());
  for (const State& state : states) {
    table.Row(state.name + kOff, state.pair->bytes());
    table.Row(state.name + kOn, state.pair->bytes());
  }
  absl::PrintF("The ring has %d slots of %d KiB. Every byte was verified.\n\n", ring.slots,
               ring.slot_bytes / 1024);

  for (size_t s = 0; s < 2; ++s) {
    if (const std::optional<double> share = table.share(states[s].name + kOff, kBare)) {
      PrintGoal(absl::StrFormat("%s, digests off: at least %.0f %% of the bare loop",
                                states[s].name, 100 * kBareShareGoal),
                *share >= kBareShareGoal, absl::StrFormat("%.0f %%", 100 * *share));
    }
  }
  for (const State& state : states) {
    if (const auto left = table.share(state.name + kOn, state.name + kOff)) {
      PrintGoal(
          absl::StrFormat("%s: digests cost at most %.0f %%", state.name, 100 * kDigestCostGoal),
          1 - *left <= kDigestCostGoal, absl::StrFormat("%.0f %%", 100 * (1 - *left)));
    }
  }
  if (timings.has(kManyTiny) && timings.has(kOneTiny)) {
    const double many = timings.best(kManyTiny), one = timings.best(kOneTiny);
    const double a_tensor = (many - one) / sizes.tiny_tensors;
    PrintGoal(
        absl::StrFormat("a tensor costs less than %.0f ns", 1e9 * kTensorGoal),
        a_tensor < kTensorGoal,
        absl::StrFormat("%.0f ns (%d of %d bytes: %.2f ms; one of the same bytes: %.2f ms)",
                        1e9 * a_tensor, sizes.tiny_tensors, kTinyBytes, 1e3 * many, 1e3 * one));
  }
  if (const auto share = table.share(kBare, kOneThread);
      share.has_value() && *share < kLeastBareShare) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "VOID: the bare loop reached %.0f %% of a one-thread memcpy, and a quiet machine of two "
        "cores reaches %.0f %%; nothing above counts",
        100 * *share, 100 * kLeastBareShare));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (const std::optional<int> code = MaybeRunBareConsumer(argc, argv)) return *code;
  if (const std::optional<int> code = fakes::MaybeRunEngineProcess(argc, argv)) return *code;
  CLI::App app("Measures the IPC transport beside this machine's limits.");
  bool smoke = false, sweep = false;
  Sizes sizes;
  app.add_flag("--smoke", smoke, "tiny sizes, bytes verified, no verdict on speed");
  app.add_flag("--sweep", sweep, "measure ring sizes instead");
  app.add_option("--repetitions", sizes.repetitions)->check(CLI::PositiveNumber);
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (smoke) sizes = kSmokeSizes;

  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  absl::Status status = PinThisThread(sizes.trainer_core);
  if (status.ok()) {
    status = sweep ? Run(smoke ? SmokeSweep() : FullSweep(sizes.repetitions))
                   : MeasureAll(sizes, /*judge=*/!smoke);
  }
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
