// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmark/benchmark.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace {

void BM_Add(benchmark::State& state) {
  int64_t sum = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sum += 1);
  state.counters["sum"] = static_cast<double>(sum);
}
BENCHMARK(BM_Add)->Iterations(10);

class Recorder : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) sum_ += run.counters.at("sum").value;
  }
  double sum() const { return sum_; }

 private:
  double sum_ = 0;
};

TEST(BenchmarkTest, RunsTheIterationsAskedFor) {
  Recorder recorder;
  EXPECT_EQ(benchmark::RunSpecifiedBenchmarks(&recorder), 1u);
  EXPECT_EQ(recorder.sum(), 10);
}

}  // namespace
