// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/communicator_conformance.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "refit/sharding/communicators/process_communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"

namespace weight_sync::refit {
namespace {

using Ranks = std::vector<std::unique_ptr<Communicator>>;

Ranks Threads(int size) {
  auto ranks = MakeThreadCommunicators(size);
  ABSL_CHECK_OK(ranks);
  return *std::move(ranks);
}

// Every rank connects on a thread of its own.
template <typename Connect>
Ranks Connected(int size, Connect connect) {
  Ranks ranks(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const base::CancelScope scope(base::Deadline::After(absl::Minutes(2)));
      auto communicator = connect(JobRank{"conformance", r, size}, scope);
      ABSL_CHECK_OK(communicator);
      ranks[static_cast<size_t>(r)] = *std::move(communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

Ranks OnHost(int size) {
  const base::testing::SocketFolder folder;
  return Connected(size, [&](const JobRank& me, const base::CancelScope& scope) {
    return ConnectOnHost(me, folder.endpoint(), scope);
  });
}

Ranks OverTcp(int size) {
  auto host = TcpHost::Listen("127.0.0.1", 0);
  ABSL_CHECK_OK(host);
  const int port = host->port();
  return Connected(size, [&](const JobRank& me, const base::CancelScope& scope) {
    return me.rank == 0 ? (*std::move(host)).Connect(me, scope)
                        : ConnectOverTcp(me, "127.0.0.1", port, scope);
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorConformanceTest,
                         ::testing::Values(CommunicatorConformanceParams{"Threads", Threads},
                                           CommunicatorConformanceParams{"OnHost", OnHost},
                                           CommunicatorConformanceParams{"OverTcp", OverTcp}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weight_sync::refit
