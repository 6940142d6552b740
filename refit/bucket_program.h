// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What sources over memory of this process share: a Program that runs a CopyProgram, and the checks
// of what goes into one.
//
//   WS_RETURN_IF_ERROR(CheckPiece(piece, bucket, info));      // a copy program does not look again
//   return MakeBucketProgram(std::move(copies), arrays, buckets, gate);

#ifndef WEIGHT_SYNC_REFIT_BUCKET_PROGRAM_H_
#define WEIGHT_SYNC_REFIT_BUCKET_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/bound_arrays.h"
#include "refit/device/device.h"
#include "refit/layout/copy_program.h"
#include "refit/packing/bucket.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"

namespace weight_sync::refit {

// InvalidArgument unless the piece is a box inside its tensor and has its place inside the bucket.
absl::Status CheckPiece(const Piece& piece, const Bucket& bucket, const RefitInfo& info);

// What Fill() has to hold for each bucket, and whether a slot can: Internal for a bucket that was not
// compiled, or a slot that is too small.
std::vector<int64_t> BytesOf(absl::Span<const Bucket> buckets);
absl::Status CheckSlot(int bucket, absl::Span<const int64_t> bucket_bytes, const DeviceSpan& slot);

// A program whose Begin() is the arrays', and whose Fill() is Aborted when they are no longer where
// they were at the last Begin(); before the first, when the program was made. `gate`, which the
// trainer's steps open, must outlive it.
std::unique_ptr<Program> MakeBucketProgram(CopyProgram copies, std::shared_ptr<BoundArrays> arrays,
                                           absl::Span<const Bucket> buckets, const StepGate* gate);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_BUCKET_PROGRAM_H_
