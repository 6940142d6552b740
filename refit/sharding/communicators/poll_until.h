// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// poll(2) that also ends with a scope.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_POLL_UNTIL_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_POLL_UNTIL_H_

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/log/check.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"

namespace weight_sync::refit {

// Waits for one of `fds`, for the end of `scope`, or until `wake`. A descriptor of -1 is passed
// over.
inline void PollUntil(std::vector<pollfd>& fds, const base::CancelScope& scope,
                      const base::Deadline& wake) {
  fds.push_back({scope.fd(), POLLIN, 0});
  const int ready = ::poll(fds.data(), fds.size(),
                           base::Deadline::Earlier(scope.deadline(), wake).remaining_ms());
  PCHECK(ready >= 0 || errno == EINTR) << "poll";
  if (ready < 0) {
    for (pollfd& fd : fds) fd.revents = 0;
  }
  fds.pop_back();
}
inline void PollUntil(std::vector<pollfd>& fds, const base::CancelScope& scope) {
  PollUntil(fds, scope, scope.deadline());
}

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_POLL_UNTIL_H_
