// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/bucket_program.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cancel_scope.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

class BucketProgram : public Program {
 public:
  BucketProgram(CopyProgram copies, std::shared_ptr<BoundArrays> arrays,
                std::vector<int64_t> bucket_bytes, const StepGate* gate)
      : copies_(std::move(copies)),
        arrays_(std::move(arrays)),
        binding_(arrays_->binding()),
        bucket_bytes_(std::move(bucket_bytes)),
        gate_(gate) {}

  absl::StatusOr<ReadGuard> Begin(Version version, const base::CancelScope&) override {
    WS_ASSIGN_OR_RETURN(ReadGuard guard, arrays_->Begin(version, *gate_));
    binding_ = arrays_->binding();
    return guard;
  }

  absl::StatusOr<Event> Fill(int bucket, const DeviceSpan& dst, Stream&) override {
    WS_RETURN_IF_ERROR(CheckSlot(bucket, bucket_bytes_, dst));
    const auto bases = arrays_->bases(binding_);
    if (!bases.ok()) return base::Prefixed(absl::StrCat("bucket ", bucket), bases.status());
    copies_.Run(bucket, *bases, dst.data);
    return Event::Complete();
  }

 private:
  const CopyProgram copies_;
  const std::shared_ptr<BoundArrays> arrays_;
  uint64_t binding_;  // of the sync that is open
  const std::vector<int64_t> bucket_bytes_;
  const StepGate* const gate_;
};

}  // namespace

absl::Status CheckPiece(const Piece& piece, const Bucket& bucket, const RefitInfo& info) {
  if (piece.tensor < 0 || piece.tensor >= info.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a bucket names tensor ", piece.tensor, " of ", info.size()));
  }
  const TensorSpec& tensor = info[piece.tensor];
  const Shape shape = StorageShape(tensor.dtype, tensor.shape);
  bool inside = piece.box.rank == shape.rank();
  for (int dim = 0; inside && dim < shape.rank(); ++dim) {
    const int64_t begin = piece.box.begin[dim], size = piece.box.size[dim];
    inside = begin >= 0 && size >= 0 && begin <= shape[dim] && size <= shape[dim] - begin;
  }
  if (!inside) {
    return absl::InvalidArgumentError(absl::StrCat("box ", piece.box.ToString(), " is not in '",
                                                   tensor.name, "' of ", shape.ToString()));
  }
  const int64_t bytes = piece.box.num_elements() * StorageElementBytes(tensor.dtype);
  if (piece.bytes != bytes || piece.dst < 0 || piece.dst > bucket.bytes - bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "box ", piece.box.ToString(), " of '", tensor.name, "' takes ", bytes, " bytes, not the ",
        piece.bytes, " at byte ", piece.dst, " of a bucket of ", bucket.bytes));
  }
  return absl::OkStatus();
}

std::vector<int64_t> BytesOf(absl::Span<const Bucket> buckets) {
  std::vector<int64_t> bytes;
  bytes.reserve(buckets.size());
  for (const Bucket& bucket : buckets) bytes.push_back(bucket.bytes);
  return bytes;
}

absl::Status CheckSlot(int bucket, absl::Span<const int64_t> bucket_bytes, const DeviceSpan& slot) {
  if (bucket < 0 || static_cast<size_t>(bucket) >= bucket_bytes.size()) {
    return absl::InternalError(absl::StrCat("bucket ", bucket, " was not compiled"));
  }
  if (slot.bytes < bucket_bytes[static_cast<size_t>(bucket)]) {
    return absl::InternalError(
        absl::StrCat("bucket ", bucket, " does not fit a slot of ", slot.bytes, " bytes"));
  }
  return absl::OkStatus();
}

std::unique_ptr<Program> MakeBucketProgram(CopyProgram copies, std::shared_ptr<BoundArrays> arrays,
                                           absl::Span<const Bucket> buckets, const StepGate* gate) {
  return std::make_unique<BucketProgram>(std::move(copies), std::move(arrays), BytesOf(buckets),
                                         gate);
}

}  // namespace weight_sync::refit
