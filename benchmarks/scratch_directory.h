// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ScratchDirectory: a private directory with a name short enough for a unix socket's in it. Removed
// at the end, with the one socket that may be left.

#ifndef WEIGHT_SYNC_BENCHMARKS_SCRATCH_DIRECTORY_H_
#define WEIGHT_SYNC_BENCHMARKS_SCRATCH_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/log/check.h"

namespace weight_sync::benchmarks {

class ScratchDirectory {
 public:
  ScratchDirectory() { PCHECK(::mkdtemp(path_.data()) != nullptr) << path_; }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string endpoint() const { return path_ + "/engine.sock"; }

 private:
  std::string path_ = "/tmp/weight_sync.XXXXXX";
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_SCRATCH_DIRECTORY_H_
