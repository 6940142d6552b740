// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/hf_source.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/layout/copy_program.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

// InvalidArgument unless the piece is a box inside its tensor and has its place inside the bucket:
// a copy program does not look again.
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

class HfProgram : public Program {
 public:
  HfProgram(CopyProgram copies, std::vector<const std::byte*> bases,
            std::vector<int64_t> bucket_bytes, const StepGate* gate)
      : copies_(std::move(copies)),
        bases_(std::move(bases)),
        bucket_bytes_(std::move(bucket_bytes)),
        gate_(gate) {}

  absl::StatusOr<ReadGuard> Begin(Version) override { return gate_->Read(); }

  absl::StatusOr<Event> Fill(int bucket, const DeviceSpan& dst, Stream&) override {
    if (bucket < 0 || bucket >= copies_.buckets()) {
      return absl::InternalError(absl::StrCat("bucket ", bucket, " was not compiled"));
    }
    if (dst.bytes < bucket_bytes_[static_cast<size_t>(bucket)]) {
      return absl::InternalError(
          absl::StrCat("bucket ", bucket, " does not fit a slot of ", dst.bytes, " bytes"));
    }
    copies_.Run(bucket, bases_, dst.data);
    return Event::Complete();
  }

 private:
  const CopyProgram copies_;
  const std::vector<const std::byte*> bases_;
  const std::vector<int64_t> bucket_bytes_;
  const StepGate* const gate_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HfSource>> HfSource::Create(std::vector<HfParameter> parameters,
                                                           const StepGate* gate) {
  if (gate == nullptr) return absl::InvalidArgumentError("the source has no StepGate");
  std::vector<TensorSpec> tensors;
  tensors.reserve(parameters.size());
  for (const HfParameter& parameter : parameters) {
    if (parameter.view.data() == nullptr && parameter.view.num_bytes() > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", parameter.name, "' has elements and no memory"));
    }
    tensors.push_back({parameter.name, parameter.view.shape(), parameter.view.dtype()});
  }
  WS_ASSIGN_OR_RETURN(RefitInfo info, RefitInfo::Create(std::move(tensors)));
  return std::unique_ptr<HfSource>(new HfSource(std::move(info), std::move(parameters), gate));
}

absl::StatusOr<std::unique_ptr<Program>> HfSource::Compile(absl::Span<const Bucket> buckets) {
  CopyProgram copies;
  std::vector<int64_t> bucket_bytes;
  for (const Bucket& bucket : buckets) {
    copies.StartBucket();
    bucket_bytes.push_back(bucket.bytes);
    for (const Piece& piece : bucket.pieces) {
      WS_RETURN_IF_ERROR(CheckPiece(piece, bucket, info_));
      copies.Append(piece.tensor, parameters_[static_cast<size_t>(piece.tensor)].view, piece.box,
                    piece.dst);
    }
  }
  std::vector<const std::byte*> bases;
  for (const HfParameter& parameter : parameters_) bases.push_back(parameter.view.data());
  return std::make_unique<HfProgram>(std::move(copies), std::move(bases), std::move(bucket_bytes),
                                     gate_);
}

absl::StatusOr<base::Digest128> HfSource::ReferenceDigest(int tensor) const {
  if (tensor < 0 || tensor >= info_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", tensor, " of ", info_.size()));
  }
  const HfParameter& parameter = parameters_[static_cast<size_t>(tensor)];
  return TensorDigest(parameter.name, parameter.view);
}

}  // namespace weight_sync::refit
