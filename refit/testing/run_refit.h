// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: one refit without a transport. Packs a source's tensors, compiles and runs its program
// bucket by bucket, and stores every piece as an engine does.
//
//   WS_ASSIGN_OR_RETURN(auto table, RunRefit(*source, {/*bucket_bytes=*/4096, /*alignment=*/64}));
//   table[0];                // the bytes of source->info()[0]

#ifndef WEIGHT_SYNC_REFIT_TESTING_RUN_REFIT_H_
#define WEIGHT_SYNC_REFIT_TESTING_RUN_REFIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"

namespace weight_sync::refit::testing {

// Runs a program whose sync is open, bucket by bucket. The tensors' bytes, in the order of `info`; what
// was not written has a value that shows.
absl::StatusOr<std::vector<std::vector<std::byte>>> FillTable(const RefitInfo& info,
                                                              Program& program,
                                                              absl::Span<const Bucket> buckets,
                                                              int64_t slot_bytes);

// The same of a whole refit.
absl::StatusOr<std::vector<std::vector<std::byte>>> RunRefit(RefitSource& source,
                                                             const Geometry& geometry);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_RUN_REFIT_H_
