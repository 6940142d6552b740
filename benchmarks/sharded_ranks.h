// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ShardedRanks: a trainer of two by two ranks, FSDP2 over tensor parallelism, whose weights rank 0
// gathers into the slots of a transport. This process is rank 0, and each other rank one of its own,
// this very binary in another role, off rank 0's core. Not thread-safe.
//
//   if (auto code = MaybeRunRank(argc, argv)) return *code;          // main(), first of all
//   WS_ASSIGN_OR_RETURN(auto ranks, ShardedRanks::Start(Meeting::kTcp, {2, 4096, 8192}, 4 << 20, 0));
//   WS_RETURN_IF_ERROR(ranks->Verify());
//   WS_ASSIGN_OR_RETURN(double seconds, ranks->Gather());

#ifndef WEIGHT_SYNC_BENCHMARKS_SHARDED_RANKS_H_
#define WEIGHT_SYNC_BENCHMARKS_SHARDED_RANKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fakes/child_process.h"
#include "fakes/parameters.h"

namespace weight_sync::benchmarks {

// Two matrices a layer, in bfloat16: [intermediate, hidden], whose columns tensor parallelism cuts
// (torch says _S(0, 2), S(0)), and [hidden, intermediate], of which it cuts the rows (S(0), S(1)).
// Multiples of 4.
struct ShardedWeights {
  int layers = 1;
  int64_t hidden = 0;
  int64_t intermediate = 0;

  int64_t bytes() const { return hidden * intermediate * 2 * 2 * layers; }
};

enum class Meeting {
  kAlone,  // one process holds what all ranks do
  kSharedMemory,
  kTcp,  // loopback
};

class ShardedRanks {
 public:
  static constexpr int kRanks = 4;
  static constexpr int kSlots = 4;

  // Returns when all ranks are there. `core` is rank 0's, whose thread the caller pins, after this.
  static absl::StatusOr<std::unique_ptr<ShardedRanks>> Start(Meeting meeting,
                                                             const ShardedWeights& weights,
                                                             int64_t slot_bytes, int core);
  ~ShardedRanks();

  // Rank 0's seconds for a sync, from before the ranks meet until all have said that nothing changed.
  absl::StatusOr<double> Gather();

  // The same, with each slot wiped before it is filled: DataLoss unless it then holds what it must.
  absl::Status Verify();

  class Rank;  // what every rank does alike

 private:
  ShardedRanks(std::vector<fakes::ChildProcess> others, std::unique_ptr<Rank> rank,
               fakes::Parameters slots);

  std::vector<fakes::ChildProcess> others_;  // they end when rank 0 has left
  std::unique_ptr<Rank> rank_;
  fakes::Parameters slots_;
};

// Runs the rank and returns its exit code if this process was started as one.
std::optional<int> MaybeRunRank(int argc, char** argv);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_SHARDED_RANKS_H_
