// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// WeightReceiver: the engine's side of a transfer, whatever the transport. A transport's consumer
// end calls it; an engine implements it.
//
// One update: BeginUpdate, Load for every piece in order, then EndUpdate once all bytes are there
// and their digests agree; or AbortUpdate at any point after BeginUpdate, also after EndUpdate if
// the trainer goes away or fails before it publishes. It may come after publishing too, even after
// the next Generation::Begin; it then concerns nothing, least of all the update that is about to
// begin. From the first Load until the update is published the table holds mixed weights: the
// engine must not answer from it, and after AbortUpdate it is dirty. Calls of one update come from
// one thread at a time.
//
//   absl::Status MyEngine::Load(int tensor, const refit::Box& box,
//                               absl::Span<const std::byte> bytes) {
//     refit::StoreBox(bytes.data(), box, table_[tensor]);
//     return absl::OkStatus();
//   }

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_RECEIVER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_RECEIVER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/refit_info.h"
#include "refit/version.h"

namespace weight_sync {

class WeightReceiver {
 public:
  virtual ~WeightReceiver() = default;

  // What the engine holds. Constant while the receiver lives.
  virtual const refit::RefitInfo& expected() const = 0;

  // FailedPrecondition unless the engine is paused for an update of this version.
  virtual absl::Status BeginUpdate(refit::Version version) = 0;

  // A box of tensor `tensor` of expected(), its elements in row-major order. `bytes` is borrowed:
  // the memory is reused as soon as this returns. A loader that must keep tensors takes them whole
  // and owned through OwnedTensorReceiver.
  virtual absl::Status Load(int tensor, const refit::Box& box,
                            absl::Span<const std::byte> bytes) = 0;

  // All bytes are loaded; finish what needs the whole (re-blocking, packing). Not yet published.
  virtual absl::Status EndUpdate(refit::Version version) = 0;

  virtual void AbortUpdate(const absl::Status& why) = 0;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WEIGHT_RECEIVER_H_
