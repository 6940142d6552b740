// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/owned_tensor_receiver.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync {

absl::Status OwnedTensorReceiver::BeginUpdate(refit::Version version) {
  current_ = -1;
  bytes_.reset();
  WS_RETURN_IF_ERROR(loader_->BeginUpdate(version));
  for (int t = 0; t < expected().size(); ++t) {
    if (expected()[t].bytes() != 0) continue;
    const absl::Status loaded = loader_->LoadTensor(t, nullptr);
    if (!loaded.ok()) {
      // The loader has begun, and the caller, whom this fails, will not say that it is over.
      loader_->AbortUpdate(loaded);
      return base::Prefixed(absl::StrCat("loading '", expected()[t].name, "'"), loaded);
    }
  }
  return absl::OkStatus();
}

absl::Status OwnedTensorReceiver::Load(int tensor, const refit::Box& box,
                                       absl::Span<const std::byte> bytes) {
  const refit::TensorSpec& spec = expected()[tensor];
  if (tensor != current_) {
    if (current_ >= 0) {
      return absl::InternalError(absl::StrCat("tensor '", spec.name, "' begins before '",
                                              expected()[current_].name, "' is complete"));
    }
    current_ = tensor;
    missing_ = spec.bytes();
    bytes_ = std::make_unique<std::byte[]>(static_cast<size_t>(missing_));
  }
  refit::StoreBox(bytes.data(), box,
                  refit::MutableTensorView::Contiguous(bytes_.get(), spec.dtype, spec.shape));
  missing_ -= static_cast<int64_t>(bytes.size());
  if (missing_ > 0) return absl::OkStatus();
  current_ = -1;
  return loader_->LoadTensor(tensor, std::move(bytes_));
}

absl::Status OwnedTensorReceiver::EndUpdate(refit::Version version) {
  if (current_ >= 0) {
    return absl::InternalError(absl::StrCat("the update ends before tensor '",
                                            expected()[current_].name, "' is complete"));
  }
  return loader_->EndUpdate(version);
}

void OwnedTensorReceiver::AbortUpdate(const absl::Status& why) {
  current_ = -1;
  bytes_.reset();
  loader_->AbortUpdate(why);
}

}  // namespace weight_sync
