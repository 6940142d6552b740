// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// A short private folder for unix sockets (TEST_TMPDIR is longer than a socket address holds), and
// a plain listening socket at a path.

#ifndef WEIGHT_SYNC_BASE_TESTING_SOCKET_FILE_H_
#define WEIGHT_SYNC_BASE_TESTING_SOCKET_FILE_H_

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/log/check.h"
#include "base/unique_fd.h"

namespace weight_sync::base::testing {

class SocketFolder {
 public:
  SocketFolder() {
    char path[] = "/tmp/weight_sync_test.XXXXXX";
    PCHECK(::mkdtemp(path) != nullptr);
    path_ = path;
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }  // mode 0700

 private:
  std::string path_;
};

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
