// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/thread_communicator.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "refit/sharding/communicators/member.h"
#include "refit/sharding/communicators/root.h"
#include "refit/sharding/communicators/slots.h"

namespace weight_sync::refit {

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(int size) {
  if (size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("communicators of ", size, " ranks"));
  }
  const std::shared_ptr<Segments> segments = ThreadSegments();
  std::vector<RankConnection> of_root;
  std::vector<std::unique_ptr<Communicator>> ranks(1);
  for (int rank = 1; rank < size; ++rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no socket for rank ", rank, " of ", size, ": ", std::strerror(errno)));
    }
    RankConnection of_member;
    of_root.emplace_back().socket = std::make_unique<FrameSocket>(base::UniqueFd(ends[0]));
    of_member.socket = std::make_unique<FrameSocket>(base::UniqueFd(ends[1]));
    ranks.push_back(std::make_unique<Member>(rank, size, std::move(of_member), segments));
  }
  ranks[0] = std::make_unique<Root>(std::move(of_root), segments);
  return ranks;
}

}  // namespace weight_sync::refit
