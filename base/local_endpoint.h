// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The unix-domain endpoint that one process of this machine listens on, claimed so that it has one
// owner. ZeroMQ's bind() on an ipc path whose owner is alive succeeds and silently takes over the
// new connections; a claim refuses instead. The claim is flock(2) on "<path>.lock", so it ends with
// its owner, however that dies, and a socket file left behind by a dead owner is replaced.
//
// Refused, each with the reason: a path longer than a unix socket address holds (107 bytes), a
// directory that is not this user's own with mode 0700 (a missing one is made), an endpoint whose
// owner lives (its pid is named), another user's file, and anything there that is not a socket.
// A child that is forked without exec shares the claim, which then lasts until both have ended.
// Not thread-safe. The destructor removes the socket file and the lock.
//
//   std::string path = base::DefaultEndpointPath("job-7", "engine-0");
//   WS_ASSIGN_OR_RETURN(auto claim, base::LocalEndpoint::Claim(path));
//   socket.bind(claim.uri());

#ifndef WEIGHT_SYNC_BASE_LOCAL_ENDPOINT_H_
#define WEIGHT_SYNC_BASE_LOCAL_ENDPOINT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace weight_sync::base {

// InvalidArgument unless `path` is absolute and fits a unix socket address. For both ends.
absl::Status CheckEndpointPath(absl::string_view path);

// Where `role` of `job` listens: a short digest of the full names in /tmp/weight_sync-<uid>, so
// that long names work, names that differ anywhere differ here, and two processes of one user
// compute the same whatever their environments.
std::string DefaultEndpointPath(absl::string_view job, absl::string_view role);

class LocalEndpoint {
 public:
  static absl::StatusOr<LocalEndpoint> Claim(const std::string& path);

  LocalEndpoint(LocalEndpoint&& other) noexcept = default;
  LocalEndpoint& operator=(LocalEndpoint&& other) noexcept = delete;
  ~LocalEndpoint();

  const std::string& path() const { return path_; }
  std::string uri() const;  // "ipc://<path>"

 private:
  LocalEndpoint(const std::string& path, UniqueFd lock) : path_(path), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_LOCAL_ENDPOINT_H_
