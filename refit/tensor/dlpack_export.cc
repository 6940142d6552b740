// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/tensor/dlpack_export.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "refit/tensor/dlpack_dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {
namespace {

// What a consumer holds, with what its pointers point to.
template <typename Managed>
struct Lent {
  Managed managed = {};  // NOLINT(bugprone-invalid-enum-default-initialization): set in Export()
  std::array<int64_t, Shape::kMaxRank> shape = {};
  std::array<int64_t, Shape::kMaxRank> strides = {};
  std::shared_ptr<const void> owner;
};

template <typename Managed>
absl::StatusOr<Managed*> Export(const TensorView& view, std::shared_ptr<const void> owner) {
  WS_ASSIGN_OR_RETURN(const dlpack::DLDataType dtype, DTypeToDlpack(view.dtype()));
  auto lent = std::make_unique<Lent<Managed>>();
  std::copy_n(view.shape().dims().begin(), view.shape().rank(), lent->shape.begin());
  std::copy_n(view.strides().begin(), view.shape().rank(), lent->strides.begin());
  lent->owner = std::move(owner);

  dlpack::DLTensor& tensor = lent->managed.dl_tensor;
  // The consumer is told where it may not write.
  tensor.data = const_cast<std::byte*>(view.data());
  tensor.device = {dlpack::DLDeviceType::kCpu, 0};
  tensor.ndim = view.shape().rank();
  tensor.dtype = dtype;
  tensor.shape = lent->shape.data();
  tensor.strides = lent->strides.data();
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](Managed* self) {
    delete static_cast<Lent<Managed>*>(self->manager_ctx);
  };
  return &lent.release()->managed;
}

absl::StatusOr<dlpack::DLManagedTensorVersioned*> ExportVersioned(
    const TensorView& view, uint64_t flags, std::shared_ptr<const void> owner) {
  WS_ASSIGN_OR_RETURN(auto* const managed,
                      Export<dlpack::DLManagedTensorVersioned>(view, std::move(owner)));
  managed->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  managed->flags = flags;
  return managed;
}

}  // namespace

absl::StatusOr<dlpack::DLManagedTensorVersioned*> ExportDlpack(const MutableTensorView& view,
                                                               std::shared_ptr<const void> owner) {
  return ExportVersioned(view, /*flags=*/0, std::move(owner));
}

absl::StatusOr<dlpack::DLManagedTensorVersioned*> ExportReadOnlyDlpack(
    const TensorView& view, std::shared_ptr<const void> owner) {
  return ExportVersioned(view, dlpack::kReadOnly, std::move(owner));
}

absl::StatusOr<dlpack::DLManagedTensor*> ExportUnversionedDlpack(
    const MutableTensorView& view, std::shared_ptr<const void> owner) {
  return Export<dlpack::DLManagedTensor>(view, std::move(owner));
}

}  // namespace weight_sync::refit
