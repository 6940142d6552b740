// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/rank_processes.h"

#include <filesystem>
#include <thread>
#include <utility>

#include "absl/log/absl_check.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/shared_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/sharding/communicators/process_communicator.h"

namespace weight_sync::refit::testing {

using base::testing::ChildProcess;
using ::testing::IsEmpty;

std::string OverName(RankProcesses::Over over) {
  return over == RankProcesses::Over::kTcp ? "OverTcp" : "OnHost";
}

RankProcesses::RankProcesses(int size, Over over, const Body& body) : over_(over) {
  for (int r = 0; r < size; ++r) {
    processes_.push_back(std::make_unique<ChildProcess>([&, r](Side& side) {
      auto communicator = Connect(r, size, side);
      ASSERT_TRUE(communicator.ok()) << communicator.status();
      body(**communicator, side);
    }));
    memory_prefixes_.push_back(base::SharedMemoryPrefix(processes_.back()->pid()));
    // The others need rank 0's port.
    if (r == 0 && over == Over::kTcp) ABSL_CHECK(absl::SimpleAtoi(processes_[0]->Hear(), &port_));
  }
}

absl::StatusOr<std::unique_ptr<Communicator>> RankProcesses::Connect(int rank, int size,
                                                                     Side& side) const {
  const base::CancelScope scope(base::Deadline::After(absl::Minutes(2)));
  const JobRank me{"job", rank, size};
  if (over_ == Over::kHost) return ConnectOnHost(me, folder_.endpoint(), scope);
  if (rank != 0) return ConnectOverTcp(me, "127.0.0.1", port_, scope);
  auto host = TcpHost::Listen("127.0.0.1", 0);
  ABSL_CHECK_OK(host);
  side.Say(absl::StrCat(host->port()));
  return (*std::move(host)).Connect(me, scope);
}

void RankProcesses::ExpectCleanEnd(int dead) {
  for (int r = 0; r < size(); ++r) {
    if (r != dead) (*this)[r].Release();
  }
  for (int r = 0; r < size(); ++r) {
    if (r == dead) continue;
    EXPECT_TRUE((*this)[r].Succeeded()) << "rank " << r;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  // Another sandbox's process may have the same number, and memory with a name for a moment.
  const base::Deadline deadline = base::Deadline::After(absl::Minutes(1));
  while (!MemoryLeft().empty() && !deadline.expired()) std::this_thread::yield();
  EXPECT_THAT(MemoryLeft(), IsEmpty());
}

std::vector<std::string> RankProcesses::MemoryLeft() const {
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    for (const std::string& prefix : memory_prefixes_) {
      if (absl::StartsWith(name, prefix)) left.push_back(name);
    }
  }
  return left;
}

}  // namespace weight_sync::refit::testing
