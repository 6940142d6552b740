// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deep verification: the engine digests its own table after loading, the trainer digests its
// parameters by a path that shares no code with packing (RefitSource::ReferenceDigest), and every
// tensor is compared by name. It finds what no wire digest can: a tensor that was packed or loaded
// into the wrong place, or not at all. Thread-safe.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_DEEP_VERIFICATION_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_DEEP_VERIFICATION_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/refit_source.h"
#include "weight_sync/generation.h"

namespace weight_sync {

// DataLoss names the tensors that differ, and those that one side lacks.
absl::Status CompareTable(const refit::RefitSource& source, absl::Span<const NamedDigest> table);

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_DEEP_VERIFICATION_H_
