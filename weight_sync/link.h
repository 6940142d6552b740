// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Link: a transport, sender side. The one driver loop (sync_driver.h) runs every transport through
// this; a new transport is a new Link and nothing else.
//
// Hello once for a connection; then for each sync Begin, and for each bucket in order Acquire,
// (fill), Submit, then Commit; or Abort at any point after Begin. After Abort the next Begin starts
// anew. Errors of the far end carry its own text. One thread at a time.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_LINK_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_LINK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/device/device.h"
#include "refit/packing/packer.h"
#include "refit/refit_info.h"
#include "refit/version.h"

namespace weight_sync {

// What the two ends must hold alike before a byte of a sync moves.
struct TransferPlan {
  refit::Version version = 0;
  int64_t buckets = 0;
  base::Digest128 plan;      // refit::PlanDigest of the buckets
  bool wire_digests = true;  // whether Commit will bring a digest for each bucket
};

// What the far end says it has loaded.
struct Receipt {
  int64_t tensors = 0;
  int64_t buckets = 0;
  int64_t bytes = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  // Agrees on tensors and geometry, before any byte: names, shapes and dtypes that differ are
  // InvalidArgument and named.
  virtual absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                                const base::CancelScope& scope) = 0;

  // False once the far end is gone: a new connection and Hello are needed.
  virtual bool connected() const = 0;

  virtual absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) = 0;

  // Memory for the bucket's bytes, the link's own, until Submit.
  virtual absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                                    const base::CancelScope& scope) = 0;

  // Hands over the first `used` bytes of the acquired memory once `filled` is done.
  virtual absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                              const base::CancelScope& scope) = 0;

  // Waits until the far end has loaded every bucket and agrees with every digest (empty without
  // wire digests). DataLoss names the buckets that differ.
  virtual absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                         const base::CancelScope& scope) = 0;

  // Ends the sync at the far end, which discards what is in flight. Returns what the far end itself
  // had run into, or OK; best effort within the scope.
  virtual absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) = 0;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_LINK_H_
