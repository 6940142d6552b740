// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/bound_arrays.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

// Of a copy, which no step changes.
class SnapshotReading : public ReadGuard::Reading {
 public:
  absl::Status Unchanged() override { return absl::OkStatus(); }
  bool blocks_trainer() const override { return false; }
};

}  // namespace

BoundArrays::BoundArrays(std::vector<TensorView> views, size_t bindable)
    : views_(std::move(views)), bindable_(bindable) {
  places_.reserve(views_.size());
  for (const TensorView& view : views_) places_.push_back(view.data());
}

void BoundArrays::Bind(std::optional<Version> version, absl::Span<const std::byte* const> places) {
  CHECK_EQ(places.size(), bindable_);
  std::copy(places.begin(), places.end(), places_.begin());
  bound_ = true;
  version_ = version;
  if (!snapshot_.has_value()) ++binding_;
}

void BoundArrays::Bind(std::optional<Version> version, absl::Span<const TensorView> arrays) {
  std::vector<const std::byte*> places;
  places.reserve(arrays.size());
  for (const TensorView& array : arrays) places.push_back(array.data());
  Bind(version, places);
}

void BoundArrays::Release() {
  bound_ = false;
  std::fill_n(places_.begin(), bindable_, nullptr);
  if (!snapshot_.has_value()) ++binding_;
}

absl::Status BoundArrays::UseSnapshots() {
  if (snapshot_.has_value()) return absl::OkStatus();
  WS_ASSIGN_OR_RETURN(snapshot_, Snapshot::Create(absl::MakeConstSpan(views_).first(bindable_)));
  ++binding_;
  return absl::OkStatus();
}

absl::StatusOr<ReadGuard> BoundArrays::Begin(Version version, const StepGate& gate) {
  const auto bind_first = [version](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "; Bind() the trainer's arrays of version ", version, " first"));
  };
  if (!bound_) return bind_first("no arrays are bound");
  if (version_.has_value() && *version_ != version) {
    return bind_first(absl::StrCat("the arrays bound are of version ", *version_));
  }
  WS_ASSIGN_OR_RETURN(ReadGuard guard, gate.Read());
  if (!snapshot_.has_value()) return guard;
  copied_.clear();
  snapshot_->Take(absl::MakeConstSpan(places_).first(bindable_));
  WS_RETURN_IF_ERROR(guard.Unchanged());
  copied_ = places_;
  std::copy(snapshot_->bases().begin(), snapshot_->bases().end(), copied_.begin());
  ++binding_;
  return ReadGuard(std::make_unique<SnapshotReading>());
}

absl::StatusOr<absl::Span<const std::byte* const>> BoundArrays::bases() const {
  if (!snapshot_.has_value()) {
    if (!bound_) return absl::FailedPreconditionError("no arrays are bound; Bind() some first");
    return absl::MakeConstSpan(places_);
  }
  if (copied_.empty() && !views_.empty()) {
    return absl::FailedPreconditionError("no copy of the arrays was made; Begin() a sync first");
  }
  return absl::MakeConstSpan(copied_);
}

absl::StatusOr<absl::Span<const std::byte* const>> BoundArrays::bases(uint64_t binding) const {
  if (binding == binding_) return bases();
  return absl::AbortedError("the arrays were bound anew or released since the sync began");
}

}  // namespace weight_sync::refit
