// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TorchPeer: torch on the CPU, in a process of its own on this thread's cores, with one thread and
// huge pages. What it can be asked is in its script, by default torch_peer.py. Not thread-safe.
//
//   auto torch = TorchPeer::Start();                  // NotFound: `tools/peers/setup torch`
//   WS_ASSIGN_OR_RETURN(double seconds, torch->Run("transpose 16384 8192"));

#ifndef WEIGHT_SYNC_BENCHMARKS_TORCH_PEER_H_
#define WEIGHT_SYNC_BENCHMARKS_TORCH_PEER_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace weight_sync::benchmarks {

class TorchPeer {
 public:
  // `script` is a Python program and its arguments. It says torch's version in its first line.
  static absl::StatusOr<TorchPeer> Start(const std::vector<std::string>& script = {
                                             "benchmarks/torch_peer.py"});

  TorchPeer(TorchPeer&& other) noexcept;
  TorchPeer& operator=(TorchPeer&&) = delete;
  ~TorchPeer();

  const std::string& version() const { return version_; }

  // The seconds that torch needs for it, of the fastest of its forms.
  absl::StatusOr<double> Run(const std::string& operation);

 private:
  TorchPeer() = default;
  absl::StatusOr<std::string> ReadLine();

  pid_t pid_ = -1;
  base::UniqueFd socket_;  // its standard input and output
  std::string pending_;
  std::string version_;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_TORCH_PEER_H_
