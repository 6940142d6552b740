// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks have in common around Google Benchmark.
//
// Timings: a reporter that keeps every repetition, for a table of our own at the end. Google
// Benchmark's --benchmark_out works beside it.
//
//   if (!ConfigureBenchmarks(argv[0], options)) return 1;
//   RegisterTimed("copy", /*repetitions=*/9, [&] { return SecondsOf(copy); });
//   Timings timings;
//   benchmark::RunSpecifiedBenchmarks(&timings);
//   PrintGoal("a copy takes at most 1 ms", timings.best("copy") <= 1e-3, "0.9 ms");

#ifndef WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_
#define WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

namespace weight_sync::benchmarks {

class Timings : public ::benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

  // In seconds an iteration; of a benchmark that has run.
  double best(const std::string& name) const;
  double median(const std::string& name) const;
  bool has(const std::string& name) const { return seconds_.count(name) > 0; }

  // What the benchmarks that stopped with an error said, a line each.
  const std::string& errors() const { return errors_; }

 private:
  std::map<std::string, std::vector<double>> seconds_;
  std::string errors_;
};

// Registers a benchmark whose iterations take the seconds that `run` returns.
void RegisterTimed(const std::string& name, int repetitions,
                   std::function<absl::StatusOr<double>()> run, int iterations = 1);

// Hands these options to Google Benchmark, and has it interleave repetitions at random. False, with
// a line on standard error, if it does not know one. `program` is main's argv[0].
bool ConfigureBenchmarks(char* program, const std::vector<std::string>& options);

// One line: "PASS  <what>: <figure>", or MISS.
void PrintGoal(const std::string& what, bool reached, const std::string& figure);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_
