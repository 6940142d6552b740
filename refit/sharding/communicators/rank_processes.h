// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: the ranks of a trainer as processes of their own, forked from the test and connected.
//
//   RankProcesses ranks(4, RankProcesses::Over::kTcp, [](Communicator& rank, Side& side) {
//     side.Say(Refit(rank).ToString());
//   });
//   EXPECT_EQ(ranks[2].Hear(), "OK");
//   ranks.ExpectCleanEnd();
//
// Make it before the test starts threads. Not thread-safe.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_RANK_PROCESSES_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_RANK_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/testing/child_process.h"
#include "base/testing/socket_folder.h"
#include "refit/sharding/communicator.h"

namespace weight_sync::refit::testing {

class RankProcesses {
 public:
  enum class Over : uint8_t { kHost, kTcp };
  using Side = base::testing::ChildProcess::Side;
  using Body = std::function<void(Communicator&, Side&)>;

  // Each process connects and then runs `body`.
  RankProcesses(int size, Over over, const Body& body);

  int size() const { return static_cast<int>(processes_.size()); }
  base::testing::ChildProcess& operator[](int rank) {
    return *processes_[static_cast<size_t>(rank)];
  }

  // Lets all but `dead` come to their ends, and looks for what is left of any of them.
  void ExpectCleanEnd(int dead = -1);

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(int rank, int size, Side& side) const;
  std::vector<std::string> MemoryLeft() const;  // names in /dev/shm

  const Over over_;
  const base::testing::SocketFolder folder_;
  int port_ = 0;
  std::vector<std::unique_ptr<base::testing::ChildProcess>> processes_;
  std::vector<std::string> memory_prefixes_;  // of the names of what each may share
};

// "OverTcp", "OnHost": for the names of tests with a parameter.
std::string OverName(RankProcesses::Over over);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_RANK_PROCESSES_H_
