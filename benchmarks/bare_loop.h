// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// BareLoop: the least that a transfer between two processes through a ring of slots must do: one
// copies its bytes into slots, the other copies them out into a table of its own, and two counters
// say how far each is. It never sleeps, checks nothing and survives nothing: the two-copy limit
// that the real transport is measured against.
//
// The other process is this binary run again; its main() calls MaybeRunBareConsumer first.
//
//   WS_ASSIGN_OR_RETURN(auto loop, BareLoop::Start(1 << 30, {4, 1 << 20}, kEngineCore));
//   const double seconds = loop->Run();
//   WS_RETURN_IF_ERROR(loop->Verify());

#ifndef WEIGHT_SYNC_BENCHMARKS_BARE_LOOP_H_
#define WEIGHT_SYNC_BENCHMARKS_BARE_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/shared_memory.h"
#include "fakes/child_process.h"
#include "fakes/parameters.h"
#include "weight_sync/ipc/ring.h"

namespace weight_sync::benchmarks {

struct BareControl;  // in the shared memory

class BareLoop {
 public:
  static absl::StatusOr<std::unique_ptr<BareLoop>> Start(int64_t bytes, const ipc::RingLayout& ring,
                                                         int consumer_core);
  ~BareLoop();

  int64_t bytes() const { return source_.info().total_bytes(); }

  // Seconds for all bytes, until the consumer has copied the last.
  double Run();

  // DataLoss unless the consumer's table equals the source.
  absl::Status Verify();

 private:
  BareLoop(fakes::Parameters source, base::SharedMemory memory, const ipc::RingLayout& ring,
           fakes::ChildProcess consumer);

  fakes::Parameters source_;
  base::SharedMemory memory_;
  const ipc::RingLayout ring_;
  fakes::ChildProcess consumer_;
  BareControl* const control_;
};

// Runs the consumer and returns its exit code if this process was started as one.
std::optional<int> MaybeRunBareConsumer(int argc, char** argv);

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_BARE_LOOP_H_
