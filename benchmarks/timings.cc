// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/timings.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weight_sync::benchmarks {

bool Timings::ReportContext(const Context& context) {
  PrintBasicContext(&GetErrorStream(), context);
  return true;
}

void Timings::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.skipped != ::benchmark::internal::NotSkipped) {
      absl::StrAppend(&errors_, run.benchmark_name(), ": ", run.skip_message, "\n");
    } else if (run.run_type == Run::RT_Iteration) {
      seconds_[run.run_name.function_name].push_back(run.real_accumulated_time /
                                                     static_cast<double>(run.iterations));
    }
  }
}

double Timings::best(const std::string& name) const {
  const std::vector<double>& seconds = seconds_.at(name);
  return *std::min_element(seconds.begin(), seconds.end());
}

double Timings::median(const std::string& name) const {
  std::vector<double> seconds = seconds_.at(name);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void RegisterTimed(const std::string& name, int repetitions,
                   std::function<absl::StatusOr<double>()> run, int iterations) {
  ::benchmark::RegisterBenchmark(name,
                                 [run = std::move(run)](::benchmark::State& state) {
                                   for (auto _ : state) {
                                     const absl::StatusOr<double> seconds = run();
                                     if (!seconds.ok())
                                       return state.SkipWithError(seconds.status().ToString());
                                     state.SetIterationTime(*seconds);
                                   }
                                 })
      ->UseManualTime()
      ->Iterations(iterations)
      ->Repetitions(repetitions);
}

bool ConfigureBenchmarks(char* program, const std::vector<std::string>& options) {
  std::vector<std::string> arguments = options;
  arguments.push_back("--benchmark_enable_random_interleaving=true");
  std::vector<char*> pointers = {program};
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  ::benchmark::Initialize(&count, pointers.data());
  return !::benchmark::ReportUnrecognizedArguments(count, pointers.data());
}

void PrintGoal(const std::string& what, bool reached, const std::string& figure) {
  absl::PrintF("%s  %s: %s\n", reached ? "PASS" : "MISS", what, figure);
}

}  // namespace weight_sync::benchmarks
