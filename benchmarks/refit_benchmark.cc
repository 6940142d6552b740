// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How fast a trainer's arrays become Hugging Face tensors, beside a memcpy of as many bytes and
// beside torch, in one run:
//
//   bazel run //benchmarks:refit
//
// One thread on one core, torch too, in a process of its own (tools/peers/setup torch; without it
// there is no such column). Repetitions are interleaved at random, since a machine's speed drifts; a
// ratio holds only within one run. Into one destination as large as the tensors, and into four slots
// that are used in turn, as those of a ring. Every byte is verified. Options of Google Benchmark pass
// through, such as --benchmark_out=FILE. On a machine that is not idle, figures mean something only
// under "chrt -f 10" (root).

#include <algorithm>
#include <cstring>
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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "benchmarks/cores.h"
#include "benchmarks/plain_copies.h"
#include "benchmarks/refit_rows.h"
#include "benchmarks/states.h"
#include "benchmarks/stopwatch.h"
#include "benchmarks/timings.h"
#include "benchmarks/torch_peer.h"
#include "fakes/parameters.h"
#include "refit/layout/box.h"
#include "refit/layout/copy_program.h"
#include "refit/layout/kernels/kernels.h"

namespace weight_sync::benchmarks {
namespace {

constexpr double kTinyGoal = 50e-9;

constexpr int kSlots = 4;
constexpr const char* kMemcpy = PlainCopies::kMemcpy;
constexpr const char* kPlain = PlainCopies::kPlain;
constexpr const char* kTorch = PlainCopies::kTorch;

struct Settings {
  bool small = false;
  int tiny_copies = 20'000;
  int repetitions = 9;
  int core = kTrainerCore;
  std::vector<int64_t> slot_bytes = {4 << 20, 1 << 20};
  refit::CopyOptions copy;
};

template <class Work>
double Seconds(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

std::string InSlots(const std::string& name, int64_t slot_bytes) {
  return absl::StrFormat("%s, in slots of %d KiB", name, slot_bytes / 1024);
}

std::string Tiny(int64_t bytes) { return absl::StrFormat("copies of %d bytes", bytes); }

// Many small tensors, one after another but for a gap, so that none is joined, into slots as a ring's.
class TinyCopies {
 public:
  TinyCopies(int64_t bytes, const Settings& settings, const std::byte* memory)
      : bytes_(bytes), copies_(settings.tiny_copies), program_(settings.copy) {
    for (int i = 0; i < copies_; ++i) {
      if (i % kABucket == 0) program_.StartBucket();
      bases_.push_back(memory + i * stride());
      const auto view =
          refit::TensorView::Contiguous(bases_.back(), refit::DType::kBF16, {bytes / 2});
      program_.Append(i, view, refit::Box::Whole(view.shape()), i % kABucket * stride());
    }
  }

  int64_t bytes() const { return bytes_; }
  int copies() const { return copies_; }

  void FillSlots(std::byte* dst) const {
    for (int b = 0; b < program_.buckets(); ++b) program_.Run(b, bases_, Slot(dst, b));
  }

  // DataLoss unless every slot holds what FillSlots() put there last.
  absl::Status Verify(const std::byte* dst) const {
    for (int i = std::max(0, copies_ - (kSlots - 1) * kABucket); i < copies_; ++i) {
      if (std::memcmp(Slot(dst, i / kABucket) + i % kABucket * stride(),
                      bases_[static_cast<size_t>(i)], static_cast<size_t>(bytes_)) != 0) {
        return absl::DataLossError(absl::StrCat("copy ", i, " of ", bytes_, " bytes is wrong"));
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kABucket = 1000;  // copies: at most 1 MiB

  int64_t stride() const { return bytes_ + 16; }
  template <class Bytes>
  Bytes* Slot(Bytes* dst, int bucket) const {
    return dst + int64_t{bucket} % kSlots * kABucket * stride();
  }

  int64_t bytes_;
  int copies_;
  std::vector<const std::byte*> bases_;
  refit::CopyProgram program_;
};

// A row, whole and in slots.
struct Jobs {
  const RefitRow* row;
  std::vector<RefitJob> jobs;  // the first is the whole
};

class Table {
 public:
  explicit Table(const Timings& timings) : timings_(timings) {
    absl::PrintF("\n%-44s %6s %6s   %s\n", "GB/s (1e9 bytes, read and written halved)", "best",
                 "median", "of memcpy    torch  times torch");
  }

  // Nothing for what --benchmark_filter left out.
  void Row(const std::string& name, int64_t bytes, const std::string& limit) {
    if (!timings_.has(name)) return;
    absl::PrintF("%-44s %6.2f %6.2f", name, Rate(bytes, timings_.best(name)),
                 Rate(bytes, timings_.median(name)));
    const std::optional<double> of_limit = share(name, bytes, limit);
    absl::PrintF("   %9s", of_limit.has_value() ? absl::StrFormat("%.2f", *of_limit) : "");
    if (timings_.has(name + kTorch)) {
      absl::PrintF("   %6.2f  %11.1f", Rate(bytes, timings_.best(name + kTorch)),
                   timings_.best(name + kTorch) / timings_.best(name));
    }
    absl::PrintF("\n");
  }

  // Of the rate of `limit`, a row that was registered with set_limit.
  std::optional<double> share(const std::string& name, int64_t bytes,
                              const std::string& limit) const {
    if (!timings_.has(name) || limit_bytes_.count(limit) == 0 || !timings_.has(limit)) {
      return std::nullopt;
    }
    return Rate(bytes, timings_.best(name)) / Rate(limit_bytes_.at(limit), timings_.best(limit));
  }
  // What `name` takes beyond `bytes` at the rate of `limit`.
  std::optional<double> seconds_beside(const std::string& name, int64_t bytes,
                                       const std::string& limit) const {
    const std::optional<double> of_limit = share(name, bytes, limit);
    if (!of_limit.has_value()) return std::nullopt;
    return timings_.best(name) * (1 - *of_limit);
  }
  void set_limit(const std::string& name, int64_t bytes) { limit_bytes_[name] = bytes; }

 private:
  static double Rate(int64_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds / 1e9;
  }

  const Timings& timings_;
  std::map<std::string, int64_t> limit_bytes_;
};

absl::Status MeasureAll(const Settings& settings, bool judge) {
  const std::vector<RefitRow> rows = RefitRows(settings.small);
  int64_t most = 0;
  for (const RefitRow& row : rows) most = std::max({most, row.array_bytes(), row.hf_bytes()});
  most = std::max<int64_t>(most, settings.tiny_copies * int64_t{1100});
  const int64_t plain = rows[0].hf_bytes();
  WS_ASSIGN_OR_RETURN(fakes::Parameters arrays, fakes::Parameters::Create(Vectors(1, most)));
  WS_ASSIGN_OR_RETURN(fakes::Parameters tensors, fakes::Parameters::Create(Vectors(1, most)));
  arrays.FillSeeded(1);
  const std::byte* const src = arrays.view(0).data();
  std::byte* const dst = tensors.view(0).data();

  absl::StatusOr<TorchPeer> torch = TorchPeer::Start();
  if (!torch.ok() && !absl::IsNotFound(torch.status())) return torch.status();
  const auto add_torch = [&](const std::string& name, const std::string& operation) {
    if (!torch.ok()) return;
    RegisterTimed(name + kTorch, settings.repetitions,
                  [&torch, operation] { return torch->Run(operation); });
  };

  std::vector<Jobs> all;
  for (const RefitRow& row : rows) {
    Jobs jobs{&row, {}};
    std::vector<int64_t> bucket_bytes = settings.slot_bytes;
    bucket_bytes.insert(bucket_bytes.begin(), (row.hf_bytes() + 63) / 64 * 64);
    for (const int64_t bytes : bucket_bytes) {
      WS_ASSIGN_OR_RETURN(RefitJob job, RefitJob::Create(row, settings.copy, src, bytes));
      jobs.jobs.push_back(std::move(job));
    }
    jobs.jobs[0].Fill(dst);
    WS_RETURN_IF_ERROR(jobs.jobs[0].Verify(dst));
    const std::vector<std::byte> whole(dst, dst + row.hf_bytes());
    for (size_t i = 1; i < jobs.jobs.size(); ++i) {
      WS_RETURN_IF_ERROR(jobs.jobs[i].VerifySlots(whole.data(), dst));
    }
    all.push_back(std::move(jobs));
  }
  std::vector<std::unique_ptr<TinyCopies>> tiny;
  for (const int64_t bytes : {48, 256, 1024}) {
    tiny.push_back(std::make_unique<TinyCopies>(bytes, settings, src));
    tiny.back()->FillSlots(dst);
    WS_RETURN_IF_ERROR(tiny.back()->Verify(dst));
  }
  const PlainCopies plain_copies(src, dst, plain, settings.copy);
  plain_copies.Register(settings.repetitions, torch.ok() ? &*torch : nullptr);
  for (const int64_t slot_bytes : settings.slot_bytes) {
    plain_copies.RegisterInSlots(InSlots(kMemcpy, slot_bytes), slot_bytes, kSlots,
                                 settings.repetitions);
  }
  for (const Jobs& jobs : all) {
    RegisterTimed(jobs.row->name, settings.repetitions,
                  [&] { return Seconds([&] { jobs.jobs[0].Fill(dst); }); });
    add_torch(jobs.row->name, jobs.row->torch);
    for (size_t i = 0; i < settings.slot_bytes.size(); ++i) {
      RegisterTimed(InSlots(jobs.row->name, settings.slot_bytes[i]), settings.repetitions,
                    [&, i] { return Seconds([&] { jobs.jobs[i + 1].FillSlots(dst, kSlots); }); });
    }
  }
  for (const auto& copies : tiny) {
    RegisterTimed(Tiny(copies->bytes()), settings.repetitions,
                  [&] { return Seconds([&] { copies->FillSlots(dst); }); });
    add_torch(Tiny(copies->bytes()), absl::StrCat("tiny ", copies->copies(), " ", copies->bytes()));
  }
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());
  if (!judge) return absl::OkStatus();

  Table table(timings);
  table.set_limit(kMemcpy, plain);
  table.Row(kMemcpy, plain, kMemcpy);
  table.Row(kPlain, plain, kMemcpy);
  for (const Jobs& jobs : all) table.Row(jobs.row->name, jobs.row->moved_bytes(), kMemcpy);
  for (const int64_t slot_bytes : settings.slot_bytes) {
    const std::string limit = InSlots(kMemcpy, slot_bytes);
    table.set_limit(limit, plain);
    table.Row(limit, plain, kMemcpy);
    for (const Jobs& jobs : all) {
      table.Row(InSlots(jobs.row->name, slot_bytes), jobs.row->moved_bytes(), limit);
    }
  }
  absl::PrintF("\n%-44s %6s %6s   %s\n", "nanoseconds a copy", "best", "median",
               "beside its bytes   torch");
  for (const auto& copies : tiny) {
    const std::string name = Tiny(copies->bytes());
    if (!timings.has(name)) continue;
    const double scale = 1e9 / copies->copies();
    const auto beside = table.seconds_beside(name, copies->copies() * copies->bytes(), kMemcpy);
    absl::PrintF("%-44s %6.1f %6.1f   %16s   %s\n", name, scale * timings.best(name),
                 scale * timings.median(name),
                 beside.has_value() ? absl::StrFormat("%.1f", scale * *beside) : "",
                 timings.has(name + kTorch)
                     ? absl::StrFormat("%.0f", scale * timings.best(name + kTorch))
                     : "");
  }
  absl::PrintF(
      "\nKernels: %s, %d thread(s). %s. In slots: of a memcpy into such slots. Every byte was "
      "verified.\n",
      refit::CpuLevelName(settings.copy.level), settings.copy.threads,
      torch.ok() ? absl::StrCat("torch ", torch->version(), ", 1 thread")
                 : absl::StrCat("Without torch: ", torch.status().message()));
  absl::PrintF("What limits each:\n");
  for (const Jobs& jobs : all) absl::PrintF("  %s: %s\n", jobs.row->name, jobs.row->limit);
  absl::PrintF("  copies of some bytes: a call, and the source, which is in no cache\n\n");

  for (const Jobs& jobs : all) {
    if (const auto share = table.share(jobs.row->name, jobs.row->moved_bytes(), kMemcpy)) {
      PrintGoal(absl::StrFormat("%s: at least %.1f of a memcpy", jobs.row->name, jobs.row->goal),
                *share >= jobs.row->goal, absl::StrFormat("%.2f", *share));
    }
  }
  for (const auto& copies : tiny) {
    const std::string name = Tiny(copies->bytes());
    if (const auto beside =
            table.seconds_beside(name, copies->copies() * copies->bytes(), kMemcpy)) {
      const double a_copy = *beside / copies->copies();
      PrintGoal(
          absl::StrFormat("%s: at most %.0f ns each beside their bytes", name, 1e9 * kTinyGoal),
          a_copy <= kTinyGoal, absl::StrFormat("%.1f ns", 1e9 * a_copy));
    }
  }
  return plain_copies.CheckQuiet(timings);
}

absl::StatusOr<refit::CpuLevel> LevelNamed(const std::string& name) {
  for (const refit::CpuLevel level :
       {refit::CpuLevel::kPortable, refit::CpuLevel::kAvx2, refit::CpuLevel::kAvx512}) {
    if (name != refit::CpuLevelName(level)) continue;
    if (refit::HasCpuLevel(level)) return level;
    return absl::InvalidArgumentError(absl::StrCat("--level: this CPU has no ", name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--level is '", name, "'; it takes portable, AVX2 or AVX-512"));
}

int Main(int argc, char** argv) {
  CLI::App app("Measures how fast a trainer's arrays become Hugging Face tensors.");
  bool smoke = false;
  Settings settings;
  std::string level(refit::CpuLevelName(settings.copy.level));
  app.add_flag("--smoke", smoke, "tiny sizes, bytes verified, no verdict on speed");
  app.add_option("--repetitions", settings.repetitions)->check(CLI::PositiveNumber);
  app.add_option("--threads", settings.copy.threads, "that copy a bucket together")
      ->check(CLI::PositiveNumber);
  app.add_option("--level", level, "portable, AVX2 or AVX-512");
  app.add_option("--stream-elements-from", settings.copy.stream_elements_from,
                 "of how many bytes buckets are written past the caches where elements are moved");
  app.add_option("--stream-runs-from", settings.copy.stream_runs_from, "the same for runs");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (smoke) {
    settings.small = true;
    settings.tiny_copies = 100;
    settings.repetitions = 2;
    settings.core = kAnyCore;
    settings.slot_bytes = {4096, 1024};
  }

  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  absl::Status status = [&] {
    WS_ASSIGN_OR_RETURN(settings.copy.level, LevelNamed(level));
    // Threads share the core that they are started on.
    if (settings.copy.threads == 1) WS_RETURN_IF_ERROR(PinThisThread(settings.core));
    return MeasureAll(settings, /*judge=*/!smoke);
  }();
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
