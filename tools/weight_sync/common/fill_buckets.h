// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One refit without an engine: compiles a source for these buckets and fills them, one after another.
//
//   WS_RETURN_IF_ERROR(FillBuckets(source, buckets, [&](size_t) { return slot.data(); },
//                                  [&](size_t bucket) { Compare(slot, buckets[bucket]); }));

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_FILL_BUCKETS_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_FILL_BUCKETS_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/packing/bucket.h"
#include "refit/refit_source.h"
#include "refit/version.h"

namespace weight_sync::tools {

// What FillBuckets() syncs: the version that bound arrays must hold.
inline constexpr refit::Version kFilledVersion = 1;

// `place` says where a bucket's bytes go, `filled` is told when they are there. The source's arrays
// change meanwhile: Aborted.
absl::Status FillBuckets(refit::RefitSource& source, absl::Span<const refit::Bucket> buckets,
                         absl::FunctionRef<std::byte*(size_t bucket)> place,
                         absl::FunctionRef<void(size_t bucket)> filled);

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_FILL_BUCKETS_H_
