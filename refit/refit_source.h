// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The refit seam, trainer side. A RefitSource is a trainer's parameters seen as Hugging Face
// tensors; compiled against the buckets of a transport it becomes a Program, which fills them.
//
// - Filling is driven by the destination: transform and pack are one pass into the memory that the
//   transport owns, in slots that may be far smaller than a tensor.
// - Compile once, at init: it may take names apart and allocate. Fill() does neither.
// - One sync: Begin(), then Fill() for buckets 0, 1, 2, ... in order, then the guard's Unchanged()
//   before anything is published.
// A Program borrows its source's arrays, which must stay where they are until it is gone. One
// thread at a time drives a Program.
//
//   WS_ASSIGN_OR_RETURN(std::vector<Bucket> buckets, Pack(source.info(), geometry));
//   WS_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, source.Compile(buckets));
//   WS_ASSIGN_OR_RETURN(ReadGuard guard, program->Begin(version, scope));
//   for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
//     WS_ASSIGN_OR_RETURN(Event filled, program->Fill(b, slot, stream));
//     WS_RETURN_IF_ERROR(filled.Wait(deadline));
//     Send(slot, buckets[b].bytes);
//   }
//   WS_RETURN_IF_ERROR(guard.Unchanged());

#ifndef WEIGHT_SYNC_REFIT_REFIT_SOURCE_H_
#define WEIGHT_SYNC_REFIT_REFIT_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/device/device.h"
#include "refit/packing/bucket.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/version.h"

namespace weight_sync::refit {

class Program {
 public:
  virtual ~Program() = default;

  // Opens a sync of this version, which ends with the guard. Aborted while an optimizer step is
  // writing. Whatever the sync waits for ends by `scope`, which must outlive the guard.
  virtual absl::StatusOr<ReadGuard> Begin(Version version, const base::CancelScope& scope) = 0;

  // Puts the bucket's pieces at their places in `dst`, which must hold the bucket's bytes; padding
  // between pieces keeps what it held. The bytes are there once the event is done.
  virtual absl::StatusOr<Event> Fill(int bucket, const DeviceSpan& dst, Stream& stream) = 0;
};

class RefitSource {
 public:
  virtual ~RefitSource() = default;

  // {hf_name: (shape, dtype)} in the order in which they are sent: what NeMo-RL asks its policy for,
  // and gives its engines, as prepare_refit_info. Known before anything is compiled; as JSON by
  // refit/refit_info_json.h.
  virtual const RefitInfo& info() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Program>> Compile(absl::Span<const Bucket> buckets) = 0;

  // TensorDigest() (refit/tensor_digest.h) of one HF tensor's present values, computed from the
  // parameters by a path that shares no code with Compile() and Fill(): deep verification rests on
  // it. Thread-safe for different tensors.
  virtual absl::StatusOr<base::Digest128> ReferenceDigest(int tensor) const = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_REFIT_SOURCE_H_
