// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Piece and Bucket: what goes where in a refit, as both ends derive it from the RefitInfo and the
// Geometry that they agreed on.

#ifndef WEIGHT_SYNC_REFIT_PACKING_BUCKET_H_
#define WEIGHT_SYNC_REFIT_PACKING_BUCKET_H_

#include <cstdint>
#include <vector>

#include "refit/layout/box.h"

namespace weight_sync::refit {

// A box of one tensor, row-major at byte `dst` of its bucket.
struct Piece {
  int tensor;  // index into the RefitInfo
  Box box;     // in storage elements
  int64_t dst;
  int64_t bytes;
};

struct Bucket {
  std::vector<Piece> pieces;  // by dst, without overlap
  int64_t bytes = 0;          // up to the end of the last piece
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_PACKING_BUCKET_H_
