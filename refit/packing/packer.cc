// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/packing/packer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {

absl::Status CheckGeometry(const Geometry& geometry) {
  constexpr int64_t kLargestElement = 8;
  const int64_t alignment = geometry.alignment;
  if (alignment < kLargestElement || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "alignment is ", alignment, "; it must be a power of two of at least ", kLargestElement));
  }
  if (geometry.bucket_bytes <= 0 || geometry.bucket_bytes % alignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat("bucket_bytes is ", geometry.bucket_bytes,
                                                   "; it must be a positive multiple of ",
                                                   alignment));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Bucket>> Pack(const RefitInfo& info, const Geometry& geometry) {
  WS_RETURN_IF_ERROR(CheckGeometry(geometry));
  std::vector<Bucket> buckets(1);
  std::vector<Box> boxes;
  for (int t = 0; t < info.size(); ++t) {
    const Shape shape = StorageShape(info[t].dtype, info[t].shape);
    const int64_t element = StorageElementBytes(info[t].dtype);
    int64_t done = 0;
    while (done < shape.num_elements()) {
      // Align first, then look whether anything fits behind the padding.
      const int64_t start =
          (buckets.back().bytes + geometry.alignment - 1) / geometry.alignment * geometry.alignment;
      const int64_t room = (geometry.bucket_bytes - start) / element;
      if (room <= 0) {
        buckets.emplace_back();
        continue;
      }
      const int64_t end = done + std::min(room, shape.num_elements() - done);
      boxes.clear();
      CutFlatRange(shape, done, end, boxes);
      int64_t dst = start;
      for (const Box& box : boxes) {
        const int64_t bytes = box.num_elements() * element;
        buckets.back().pieces.push_back({t, box, dst, bytes});
        dst += bytes;
      }
      buckets.back().bytes = dst;
      done = end;
    }
  }
  return buckets;
}

base::Digest128 PlanDigest(absl::Span<const Bucket> buckets) {
  base::Digester digester;
  const auto add = [&digester](int64_t value) { digester.Add(&value, sizeof(value)); };
  for (const Bucket& bucket : buckets) {
    add(static_cast<int64_t>(bucket.pieces.size()));
    add(bucket.bytes);
    for (const Piece& piece : bucket.pieces) {
      add(piece.tensor);
      add(piece.dst);
      add(piece.bytes);
      add(piece.box.rank);
      for (int i = 0; i < piece.box.rank; ++i) {
        add(piece.box.begin[i]);
        add(piece.box.size[i]);
      }
    }
  }
  return digester.Finish();
}

}  // namespace weight_sync::refit
