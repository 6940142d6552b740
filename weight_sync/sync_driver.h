// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The one driver loop: what every sync does, on every transport.
//
//   trainer: guard = program.Begin      engine: generation.Begin (pause)     (side by side)
//   for each bucket: link.Acquire, program.Fill, digest, link.Submit
//   link.Commit; deep verification when it is due; guard.Unchanged
//   generation.Finish; before_resume; generation.Resume
//
// Failure rules: nothing is published unless every byte is proved to be of one version. After a
// failure the far end is told; an engine that may hold new bytes stays paused and dirty, and one
// that holds none is resumed. The error names the version, the bucket and the cause, the far end's
// own text when it failed first.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_SYNC_DRIVER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_SYNC_DRIVER_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/refit_source.h"
#include "weight_sync/checks.h"
#include "weight_sync/generation.h"
#include "weight_sync/link.h"
#include "weight_sync/sync_report.h"

namespace weight_sync {

struct SyncJob {
  refit::RefitSource* source;
  refit::Program* program;  // compiled against `buckets`
  absl::Span<const refit::Bucket> buckets;
  base::Digest128 plan;  // refit::PlanDigest(buckets)
  Link* link;
  Generation* generation;
  refit::Version version;
  Checks checks;
  bool verify = false;
  absl::Duration cleanup_timeout;  // for what is done after a failure
  // Between Finish and Resume: memory phases of colocated synchronizers.
  std::function<absl::Status()> before_resume = [] { return absl::OkStatus(); };
};

struct SyncResult {
  absl::Status status;
  // Whether the engine may hold bytes of this sync.
  bool bytes_sent = false;
  SyncReport report;
};

// Not thread-safe for one job. `digests` is scratch that keeps its memory from sync to sync.
SyncResult RunSync(const SyncJob& job, base::CancelScope& scope,
                   std::vector<base::Digest128>& digests);

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_SYNC_DRIVER_H_
