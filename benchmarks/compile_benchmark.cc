// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What compiling a refit costs, once at a trainer's start: from a model's config to a program that
// fills pieces of 4 MiB, from shapes alone.
//
//   bazel run //benchmarks:compile
//
// The time is that of the processor, so other work on the machine matters little. Options of Google
// Benchmark pass through.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmark/benchmark.h"
#include "benchmarks/compile_model.h"
#include "benchmarks/stopwatch.h"
#include "benchmarks/timings.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/map_source.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/packer.h"

namespace weight_sync::benchmarks {
namespace {

constexpr refit::Geometry kPieces = {4 << 20};

// Seconds of one run.
struct Parts {
  double map;      // names and regions, each checked to be complete
  double match;    // the trainer's arrays, by name and shape
  double pack;     // into pieces
  double program;  // of copies
  double total() const { return map + match + pack + program; }
};

struct Subject {
  std::string name;
  double goal;  // seconds
  std::unique_ptr<CompileModel> model;
  std::vector<Parts> runs = {};
};

absl::StatusOr<Parts> Compile(const CompileModel& model) {
  Parts parts;
  const CpuStopwatch mapping;
  WS_ASSIGN_OR_RETURN(refit::WeightMap map, model.BuildMap());
  parts.map = mapping.seconds();
  const CpuStopwatch matching;
  WS_ASSIGN_OR_RETURN(const auto source, model.CreateSource(std::move(map)));
  parts.match = matching.seconds();
  const CpuStopwatch packing;
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets,
                      refit::Pack(source->info(), kPieces));
  parts.pack = packing.seconds();
  const CpuStopwatch compiling;
  WS_ASSIGN_OR_RETURN(const auto program, source->Compile(buckets));
  parts.program = compiling.seconds();
  return parts;
}

absl::Status Report(Subject& subject, bool judge) {
  WS_ASSIGN_OR_RETURN(refit::WeightMap map, subject.model->BuildMap());
  WS_ASSIGN_OR_RETURN(const auto source, subject.model->CreateSource(std::move(map)));
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets,
                      refit::Pack(source->info(), kPieces));
  WS_ASSIGN_OR_RETURN(const refit::CopyProgram copies, source->CompileCopies(buckets));
  int64_t pieces = 0;
  for (const refit::Bucket& bucket : buckets) pieces += static_cast<int64_t>(bucket.pieces.size());
  absl::PrintF("\n%s: %d tensors of %d arrays, %.1f GB, in %d buckets, %d pieces, %d copies\n",
               subject.name, source->info().size(), subject.model->arrays().size(),
               1e-9 * static_cast<double>(source->info().total_bytes()), buckets.size(), pieces,
               copies.copies());
  if (!judge || subject.runs.empty()) return absl::OkStatus();

  std::sort(subject.runs.begin(), subject.runs.end(),
            [](const Parts& a, const Parts& b) { return a.total() < b.total(); });
  const Parts &best = subject.runs.front(), &median = subject.runs[subject.runs.size() / 2];
  absl::PrintF("  %-46s %8s %8s\n", "milliseconds of the processor, by run", "best", "median");
  const auto print = [](const char* part, double best_part, double median_part) {
    absl::PrintF("  %-46s %8.1f %8.1f\n", part, 1e3 * best_part, 1e3 * median_part);
  };
  print("map: names and regions, checked", best.map, median.map);
  print("arrays matched by name and shape", best.match, median.match);
  print("packed into pieces of 4 MiB", best.pack, median.pack);
  print("program of copies", best.program, median.program);
  print("total", best.total(), median.total());
  const double count = static_cast<double>(copies.copies());
  absl::PrintF("  %.0f ns and %.0f bytes of program a copy\n", 1e9 * best.total() / count,
               static_cast<double>(copies.bytes()) / count);
  PrintGoal(absl::StrFormat("compiled in at most %.0f ms", 1e3 * subject.goal),
            best.total() <= subject.goal, absl::StrFormat("%.1f ms", 1e3 * best.total()));
  return absl::OkStatus();
}

absl::Status Measure(int repetitions, bool judge) {
  std::vector<Subject> subjects;
  WS_ASSIGN_OR_RETURN(auto moe, CompileModel::Qwen3Moe());
  subjects.push_back({"Qwen3-30B-A3B, tunix", 0.1, std::move(moe)});
  WS_ASSIGN_OR_RETURN(auto next, CompileModel::Qwen3Next());
  subjects.push_back({"Qwen3-Next-80B-A3B, maxtext scanned", 0.5, std::move(next)});
  for (Subject& subject : subjects) {
    RegisterTimed(subject.name, repetitions, [&subject]() -> absl::StatusOr<double> {
      WS_ASSIGN_OR_RETURN(subject.runs.emplace_back(), Compile(*subject.model));
      return subject.runs.back().total();
    });
  }
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());
  for (Subject& subject : subjects) WS_RETURN_IF_ERROR(Report(subject, judge));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Measures compiling a refit of a large model.");
  bool smoke = false;
  app.add_flag("--smoke", smoke, "one run, no verdict on speed");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  const absl::Status status = Measure(/*repetitions=*/smoke ? 1 : 11, /*judge=*/!smoke);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
