// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How fast rank 0 gathers the other ranks' messages, beside this machine's memcpy, in one run:
//
//   bazel run //benchmarks:gather
//
// Every byte is copied twice, as a refit does: by its rank into the message, by rank 0 out of it.
// The ranks are threads, also where they are connected as processes are. Every byte that came is
// compared after the last round. Options of Google Benchmark pass through.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/status_macros.h"
#include "base/testing/socket_folder.h"
#include "benchmark/benchmark.h"
#include "benchmarks/memory_copy.h"
#include "benchmarks/stopwatch.h"
#include "benchmarks/timings.h"
#include "refit/sharding/communicators/process_communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"

namespace weight_sync::benchmarks {
namespace {

using Ranks = std::vector<std::unique_ptr<refit::Communicator>>;

constexpr char kCopy[] = "memcpy, 1 thread";
constexpr char kOnHost[] = "shared memory";

struct Settings {
  int contributors = 3;
  int64_t message_bytes = 4 << 20;
  int gathers = 32;  // a round
  int repetitions = 11;
};
// Every code path, in a moment.
constexpr Settings kSmokeSettings = {2, 100'001, 3, 2};

// Ranks on threads of their own; the benchmark's thread is rank 0.
class Gatherer {
 public:
  Gatherer(Ranks ranks, const Settings& settings) : settings_(settings), ranks_(std::move(ranks)) {
    for (int r = 0; r <= settings_.contributors; ++r) {
      // Rank 0's own is never sent; the rest of its memory takes what comes.
      std::vector<std::byte>& state = states_.emplace_back(static_cast<size_t>(rank_bytes()));
      for (size_t i = 0; i < state.size(); ++i) {
        state[i] = static_cast<std::byte>(i * 7 / 3 + static_cast<size_t>(r) * 91);
      }
    }
    received_.resize(states_.size() * static_cast<size_t>(rank_bytes()));
    for (int r = 1; r <= settings_.contributors; ++r) {
      threads_.emplace_back([this, r] {
        // Until rank 0 leaves.
        while (Round(r).ok()) {
        }
      });
    }
  }
  ~Gatherer() {
    ranks_[0] = nullptr;
    for (std::thread& thread : threads_) thread.join();
  }

  int64_t bytes() const { return settings_.contributors * rank_bytes(); }

  // Seconds from when all ranks have come to when all messages are read.
  absl::StatusOr<double> Round() { return Round(0); }

  absl::Status Verify() {
    for (int r = 1; r <= settings_.contributors; ++r) {
      const std::vector<std::byte>& sent = states_[static_cast<size_t>(r)];
      if (std::memcmp(Received(r, 0), sent.data(), sent.size()) != 0) {
        return absl::DataLossError(absl::StrFormat("what came of rank %d differs", r));
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t rank_bytes() const { return settings_.gathers * settings_.message_bytes; }

  std::byte* Received(int rank, int64_t gather) {
    return received_.data() + rank * rank_bytes() + gather * settings_.message_bytes;
  }

  absl::StatusOr<double> Round(int r) {
    const base::CancelScope scope(base::Deadline::After(absl::Minutes(1)));
    refit::Communicator& rank = *ranks_[static_cast<size_t>(r)];
    std::vector<int64_t> sizes(ranks_.size(), settings_.message_bytes);
    sizes[0] = 0;
    WS_RETURN_IF_ERROR(rank.BeginRound(1, absl::OkStatus(), scope));
    const Stopwatch watch;
    for (int64_t gather = 0; gather < settings_.gathers; ++gather) {
      WS_RETURN_IF_ERROR(rank.Gather(
          gather, sizes,
          [&](absl::Span<std::byte> message) {
            std::memcpy(message.data(),
                        states_[static_cast<size_t>(r)].data() + gather * settings_.message_bytes,
                        message.size());
          },
          [&](int from, absl::Span<const std::byte> message) {
            std::memcpy(Received(from, gather), message.data(), message.size());
          },
          scope));
    }
    WS_RETURN_IF_ERROR(rank.EndRound(absl::OkStatus(), scope));
    return watch.seconds();
  }

  const Settings settings_;
  Ranks ranks_;
  std::vector<std::vector<std::byte>> states_;  // by rank
  std::vector<std::byte> received_;
  std::vector<std::thread> threads_;
};

// Connects every rank on a thread of its own.
template <typename Connect>
absl::StatusOr<Ranks> Connected(int size, Connect connect) {
  const base::CancelScope scope(base::Deadline::After(absl::Minutes(1)));
  std::vector<absl::StatusOr<std::unique_ptr<refit::Communicator>>> results(
      static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      results[static_cast<size_t>(r)] = connect(refit::JobRank{"benchmark", r, size}, scope);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Ranks ranks;
  for (auto& result : results) {
    WS_RETURN_IF_ERROR(result.status());
    ranks.push_back(*std::move(result));
  }
  return ranks;
}

absl::StatusOr<Ranks> OnHost(int size) {
  const base::testing::SocketFolder folder;
  return Connected(size, [&](const refit::JobRank& me, const base::CancelScope& scope) {
    return refit::ConnectOnHost(me, folder.endpoint(), scope);
  });
}

absl::StatusOr<Ranks> OverTcp(int size) {
  WS_ASSIGN_OR_RETURN(refit::TcpHost host, refit::TcpHost::Listen("127.0.0.1", 0));
  const int port = host.port();
  return Connected(size, [&](const refit::JobRank& me, const base::CancelScope& scope) {
    return me.rank == 0 ? std::move(host).Connect(me, scope)
                        : refit::ConnectOverTcp(me, "127.0.0.1", port, scope);
  });
}

absl::Status Measure(const Settings& settings, bool judge) {
  const int size = settings.contributors + 1;
  std::map<std::string, std::unique_ptr<Gatherer>> gatherers;
  const std::pair<std::string, std::function<absl::StatusOr<Ranks>(int)>> kinds[] = {
      {"threads", refit::MakeThreadCommunicators}, {kOnHost, OnHost}, {"TCP, loopback", OverTcp}};
  for (const auto& [name, make] : kinds) {
    WS_ASSIGN_OR_RETURN(Ranks ranks, make(size));
    gatherers[name] = std::make_unique<Gatherer>(std::move(ranks), settings);
    WS_RETURN_IF_ERROR(gatherers[name]->Round().status());  // makes the slots
  }
  const int64_t bytes = gatherers[kOnHost]->bytes();
  WS_ASSIGN_OR_RETURN(MemoryCopy copy, MemoryCopy::Create(bytes / 2 * 2));
  copy.OneThread();
  RegisterTimed(kCopy, settings.repetitions, [&] { return copy.OneThread(); });
  for (const auto& [name, gatherer] : gatherers) {
    RegisterTimed(name, settings.repetitions, [&gatherer = *gatherer] { return gatherer.Round(); });
  }
  Timings timings;
  ::benchmark::RunSpecifiedBenchmarks(&timings);
  if (!timings.errors().empty()) return absl::InternalError(timings.errors());
  for (const auto& [name, gatherer] : gatherers) {
    WS_RETURN_IF_ERROR(base::Prefixed(name, gatherer->Verify()));
  }
  if (!judge) return absl::OkStatus();

  absl::PrintF("\n%d ranks give messages of %d KiB, each byte copied twice\n",
               settings.contributors, settings.message_bytes / 1024);
  absl::PrintF("%-24s %6s %6s   %s\n", "GB/s (1e9 bytes)", "best", "median", "of memcpy");
  const auto row = [&](const std::string& name) {
    if (!timings.has(name) || !timings.has(kCopy)) return;
    const double total = static_cast<double>(bytes) / 1e9;
    absl::PrintF("%-24s %6.2f %6.2f   %.0f %%\n", name, total / timings.best(name),
                 total / timings.median(name), 100 * timings.best(kCopy) / timings.best(name));
  };
  row(kCopy);
  for (const auto& [name, make] : kinds) row(name);
  absl::PrintF("Every byte was verified.\n");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Measures how fast rank 0 gathers, beside this machine's memcpy.");
  bool smoke = false;
  app.add_flag("--smoke", smoke, "tiny sizes, bytes verified, no figures");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  if (!ConfigureBenchmarks(argv[0], app.remaining())) return 1;
  const absl::Status status = Measure(smoke ? kSmokeSettings : Settings(), /*judge=*/!smoke);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weight_sync::benchmarks

int main(int argc, char** argv) { return weight_sync::benchmarks::Main(argc, argv); }
