// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/hf_source.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/bucket_program.h"
#include "refit/layout/copy_program.h"
#include "refit/tensor_digest.h"

namespace weight_sync::refit {
namespace {

std::vector<TensorView> ViewsOf(const std::vector<HfParameter>& parameters) {
  std::vector<TensorView> views;
  views.reserve(parameters.size());
  for (const HfParameter& parameter : parameters) views.push_back(parameter.view);
  return views;
}

}  // namespace

HfSource::HfSource(RefitInfo info, std::vector<HfParameter> parameters, const StepGate* gate)
    : info_(std::move(info)),
      parameters_(std::move(parameters)),
      gate_(gate),
      arrays_(std::make_shared<BoundArrays>(ViewsOf(parameters_), parameters_.size())) {
  arrays_->Bind(std::nullopt, ViewsOf(parameters_));
}

absl::Status HfSource::UseSnapshots() { return arrays_->UseSnapshots(); }

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
  CopyProgram copies(copy_options_);
  for (const Bucket& bucket : buckets) {
    copies.StartBucket();
    for (const Piece& piece : bucket.pieces) {
      WS_RETURN_IF_ERROR(CheckPiece(piece, bucket, info_));
      copies.Append(piece.tensor, parameters_[static_cast<size_t>(piece.tensor)].view, piece.box,
                    piece.dst);
    }
  }
  return MakeBucketProgram(std::move(copies), arrays_, buckets, gate_);
}

absl::StatusOr<base::Digest128> HfSource::ReferenceDigest(int tensor) const {
  if (tensor < 0 || tensor >= info_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", tensor, " of ", info_.size()));
  }
  const HfParameter& parameter = parameters_[static_cast<size_t>(tensor)];
  WS_ASSIGN_OR_RETURN(const auto bases, arrays_->bases());
  WS_ASSIGN_OR_RETURN(
      const TensorView view,
      TensorView::Strided(bases[static_cast<size_t>(tensor)], parameter.view.dtype(),
                          parameter.view.shape(), parameter.view.strides()));
  return TensorDigest(parameter.name, view);
}

}  // namespace weight_sync::refit
