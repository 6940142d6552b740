// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A plain listening socket at a path, without a claim on it.

#ifndef WEIGHT_SYNC_BASE_TESTING_SOCKET_FILE_H_
#define WEIGHT_SYNC_BASE_TESTING_SOCKET_FILE_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "absl/log/check.h"
#include "base/unique_fd.h"

namespace weight_sync::base::testing {

// Listens at `path`, or is not valid. Closing it leaves the file, as a dead owner does.
inline UniqueFd ListenAt(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  CHECK_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd.get(), 8) != 0) {
    fd.reset();
  }
  return fd;
}

}  // namespace weight_sync::base::testing

#endif  // WEIGHT_SYNC_BASE_TESTING_SOCKET_FILE_H_
