// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Copies the part of a region that lies in a piece: A is what is written, B what is read. Directly, or
// over a message between two processes, which holds nothing else than what region and piece share.
//
//   program.StartBucket();
//   WS_RETURN_IF_ERROR(AppendRegion(region, {/*tensor=*/3, DType::kF32, strides}, piece.box,
//                                   DType::kBF16, piece.dst, program));

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_REGION_COPY_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_REGION_COPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/layout/box.h"
#include "refit/layout/copy_program.h"
#include "refit/layout/region.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {

// B, as the program will find it.
struct RegionSource {
  int tensor;
  DType dtype;
  absl::Span<const int64_t> strides;  // in elements, one a dimension
};

// Appends the copies of the elements that region and `box` (of A) share; `box` lies row-major at
// byte `dst` of the bucket, in elements of `dtype`. As few copies, and as long ones, as strides and
// box allow. InvalidArgument when the dtypes' values cannot be kept, or are sub-byte.
absl::Status AppendRegion(const Region& region, const RegionSource& source, const Box& box,
                          DType dtype, int64_t dst, CopyProgram& program);

// The same in two halves. A message holds the shared elements densely in the row-major order of A,
// converted, from byte `at`: whoever packs and whoever unpacks need not know each other's strides.
// Both return its bytes, which are 0 where region and box are apart, as PackedBytes does.
absl::StatusOr<int64_t> AppendPacked(const Region& region, const RegionSource& source,
                                     const Box& box, DType dtype, int64_t at, CopyProgram& program);
absl::StatusOr<int64_t> AppendUnpacked(const Region& region, int message, int64_t at,
                                       const Box& box, DType dtype, int64_t dst,
                                       CopyProgram& program);
absl::StatusOr<int64_t> PackedBytes(const Region& region, const Box& box, DType dtype);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_REGION_COPY_H_
