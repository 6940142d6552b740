// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a rank other than 0 of a sharded trainer does in a sync: what rank 0 does, but for the bytes,
// which come together there.
//
//   WS_RETURN_IF_ERROR(Contribute(*program, buckets.size(), version, scope));

#ifndef WEIGHT_SYNC_REFIT_CONTRIBUTE_H_
#define WEIGHT_SYNC_REFIT_CONTRIBUTE_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/cancel_scope.h"
#include "refit/read_guard.h"
#include "refit/refit_source.h"
#include "refit/version.h"

namespace weight_sync::refit {

// Takes part in one sync of a program that was compiled for so many buckets, and returns the answer
// of all ranks: OK where nothing changed, or the first rank's error. `begun` is called once in between.
absl::Status Contribute(
    Program& program, size_t buckets, Version version, const base::CancelScope& scope,
    absl::FunctionRef<void(const ReadGuard&)> begun = [](const ReadGuard&) {});

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CONTRIBUTE_H_
