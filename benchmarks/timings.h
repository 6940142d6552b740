// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Timings: a Google Benchmark reporter that keeps every repetition, for a table of our own at the
// end. Google Benchmark's --benchmark_out works beside it.

#ifndef WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_
#define WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_

#include <map>
#include <string>
#include <vector>

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

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_TIMINGS_H_
