// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/roundtrip/compare_refit.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/layout/box.h"
#include "refit/maps/map_source.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "tools/weight_sync/common/fill_buckets.h"
#include "tools/weight_sync/roundtrip/simulated_ranks.h"

namespace weight_sync::roundtrip {
namespace {

// As a ring's slots are.
constexpr refit::Geometry kGeometry = {/*bucket_bytes=*/4 << 20, /*alignment=*/64};

// Where a piece's bytes are in a contiguous tensor: Pack cuts tensors into runs of their order.
int64_t PlaceOf(const refit::Box& box, const refit::TensorSpec& tensor) {
  const refit::Shape shape = refit::StorageShape(tensor.dtype, tensor.shape);
  return box.FirstElementIn(shape) * refit::StorageElementBytes(tensor.dtype);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CompareRefit(
    const refit::WeightMap& map, absl::Span<const refit::TrainerArray> arrays,
    const refit::Checkpoint& checkpoint, const std::function<void(int64_t bytes)>& compared,
    const refit::Mesh* mesh) {
  std::vector<const std::byte*> expected;
  for (const refit::TensorSpec& tensor : map.hf().tensors()) {
    const refit::NamedTensor* const held = checkpoint.Find(tensor.name);
    if (held == nullptr || held->tensor.shape() != tensor.shape ||
        held->tensor.dtype() != tensor.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", tensor.name, "' is not in the checkpoint as the map has it"));
    }
    expected.push_back(held->tensor.data());
  }
  const refit::RefitInfo& info = map.hf();
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets, refit::Pack(info, kGeometry));

  std::vector<bool> differs(static_cast<size_t>(info.size()));
  std::vector<std::byte> slot(static_cast<size_t>(kGeometry.bucket_bytes));
  const auto compare = [&](size_t b) {
    int64_t bytes = 0;
    for (const refit::Piece& piece : buckets[b].pieces) {
      const size_t t = static_cast<size_t>(piece.tensor);
      const std::byte* const wanted = expected[t] + PlaceOf(piece.box, info[piece.tensor]);
      if (std::memcmp(slot.data() + piece.dst, wanted, static_cast<size_t>(piece.bytes)) != 0) {
        differs[t] = true;
      }
      bytes += piece.bytes;
    }
    if (compared) compared(bytes);
  };
  const auto place = [&](size_t) { return slot.data(); };
  if (mesh != nullptr) {
    WS_RETURN_IF_ERROR(
        FillBucketsFromShards(map, arrays, checkpoint, *mesh, buckets, place, compare));
  } else {
    const refit::StepGate gate;
    WS_ASSIGN_OR_RETURN(const std::unique_ptr<refit::MapSource> source,
                        refit::MapSource::Create(map, arrays, &checkpoint, &gate));
    WS_RETURN_IF_ERROR(tools::FillBuckets(*source, buckets, place, compare));
  }
  std::vector<std::string> names;
  for (int t = 0; t < info.size(); ++t) {
    if (differs[static_cast<size_t>(t)]) names.push_back(info[t].name);
  }
  return names;
}

}  // namespace weight_sync::roundtrip
