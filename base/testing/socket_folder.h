// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SocketFolder: a private folder for unix sockets with a path that is short enough for their
// addresses (TEST_TMPDIR's is not), removed at the end with what is in it.
//
//   SocketFolder folder;
//   auto claim = LocalEndpoint::Claim(folder.endpoint());

#ifndef WEIGHT_SYNC_BASE_TESTING_SOCKET_FOLDER_H_
#define WEIGHT_SYNC_BASE_TESTING_SOCKET_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/log/check.h"

namespace weight_sync::base::testing {

class SocketFolder {
 public:
  SocketFolder() { PCHECK(::mkdtemp(path_.data()) != nullptr) << path_; }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }  // mode 0700
  std::string endpoint() const { return path_ + "/e.sock"; }

 private:
  std::string path_ = "/tmp/weight_sync.XXXXXX";
};

}  // namespace weight_sync::base::testing

#endif  // WEIGHT_SYNC_BASE_TESTING_SOCKET_FOLDER_H_
