// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EndpointForTesting: the path of a unix socket in a private directory of its own, short enough for
// a socket's address (a test's TEST_TMPDIR is not), removed at the end.
//
//   wire::EndpointForTesting endpoint;
//   auto claim = base::LocalEndpoint::Claim(endpoint.path());

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WIRE_ENDPOINT_FOR_TESTING_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WIRE_ENDPOINT_FOR_TESTING_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/log/absl_check.h"

namespace weight_sync::wire {

class EndpointForTesting {
 public:
  EndpointForTesting() {
    char directory[] = "/tmp/weight_sync_XXXXXX";
    ABSL_CHECK(::mkdtemp(directory) != nullptr);
    directory_ = directory;
  }
  EndpointForTesting(const EndpointForTesting&) = delete;
  EndpointForTesting& operator=(const EndpointForTesting&) = delete;
  ~EndpointForTesting() { std::filesystem::remove_all(directory_); }

  const std::string& directory() const { return directory_; }
  std::string path() const { return directory_ + "/e.sock"; }

 private:
  std::string directory_;
};

}  // namespace weight_sync::wire

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WIRE_ENDPOINT_FOR_TESTING_H_
