// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks of several processes. Each calls once, with what it is, and returns when all have come:
//
// - ConnectOnHost: all on one machine. Messages lie in shared memory, two for each rank, allocated
//   when the first one comes and anew when a larger one does. Nothing of it has a name for longer
//   than the other end takes to map it.
// - ConnectOverTcp, and TcpHost on rank 0: on several machines. Messages go through a second
//   connection of each rank.
//
// Rank 0 listens; it may come later than the others. Refused, with the reason on both ends: another
// job, another number of ranks, a rank that has come already, another user (on one machine),
// another version of this library's protocol. A rank that leaves before all have come makes its
// place free again. Who is missing when the scope ends is named. Afterwards nobody listens any more.
//
// A rank that dies is seen at once by its closed connection; on one machine also where a child that
// it forked keeps that open. A machine that vanishes is seen within half a minute, or at the
// scope's end. TCP carries neither encryption nor a secret: give TcpHost an address of a private
// network.
//
//   base::CancelScope scope(base::Deadline::After(absl::Minutes(5)));
//   const refit::JobRank me{"job-7", rank, size};
//   WS_ASSIGN_OR_RETURN(auto communicator, refit::ConnectOnHost(
//       me, base::DefaultEndpointPath(me.job, "trainer"), scope));
//
// or, on several machines,
//
//   if (rank == 0) {
//     WS_ASSIGN_OR_RETURN(refit::TcpHost host, refit::TcpHost::Listen("10.0.0.1", 29600));
//     WS_ASSIGN_OR_RETURN(communicator, std::move(host).Connect(me, scope));
//   } else {
//     WS_ASSIGN_OR_RETURN(communicator, refit::ConnectOverTcp(me, "10.0.0.1", 29600, scope));
//   }

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PROCESS_COMMUNICATOR_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PROCESS_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "base/unique_fd.h"
#include "refit/sharding/communicator.h"

namespace weight_sync::refit {

struct JobRank {
  std::string job;  // the same on all ranks, and no other job's; at most 256 bytes
  int rank = 0;
  int size = 1;
};

// `endpoint` is the path of a unix socket in a directory of this user alone
// (base/local_endpoint.h).
absl::StatusOr<std::unique_ptr<Communicator>> ConnectOnHost(const JobRank& me,
                                                            const std::string& endpoint,
                                                            const base::CancelScope& scope);

// Where rank 0 waits for the others.
class TcpHost {
 public:
  // On this address only: a name, or an address of either family, without brackets. Port 0: any
  // that is free. Unavailable where it cannot listen, with the reason.
  static absl::StatusOr<TcpHost> Listen(const std::string& host, int port);

  int port() const { return port_; }

  // Rank 0's ConnectOverTcp.
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const JobRank& me,
                                                        const base::CancelScope& scope) &&;

 private:
  TcpHost(base::UniqueFd listener, int port) : listener_(std::move(listener)), port_(port) {}

  base::UniqueFd listener_;
  int port_;
};

// Of the other ranks. How long it takes to look up a name is the system's to say, not `scope`'s.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectOverTcp(const JobRank& me,
                                                             const std::string& host, int port,
                                                             const base::CancelScope& scope);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PROCESS_COMMUNICATOR_H_
