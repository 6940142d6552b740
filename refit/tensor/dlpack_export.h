// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lends tensors by DLPack: torch, jax and numpy see the memory of a view, without a copy.
//
// `owner` is whatever keeps that memory; it is let go when the consumer calls the deleter, on the
// consumer's thread. What these return belongs to the consumer, whatever becomes of it.
//
//   auto memory = std::make_shared<std::vector<std::byte>>(bytes);
//   const auto view = MutableTensorView::Contiguous(memory->data(), DType::kBF16, {151936, 1024});
//   WS_ASSIGN_OR_RETURN(dlpack::DLManagedTensorVersioned * lent, ExportDlpack(view, memory));
//
// Unimplemented for elements that DLPack has no type for (C64). Thread-safe.

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DLPACK_EXPORT_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DLPACK_EXPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "refit/tensor/dlpack_abi.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

absl::StatusOr<dlpack::DLManagedTensorVersioned*> ExportDlpack(const MutableTensorView& view,
                                                               std::shared_ptr<const void> owner);

// The consumer may not write to it.
absl::StatusOr<dlpack::DLManagedTensorVersioned*> ExportReadOnlyDlpack(
    const TensorView& view, std::shared_ptr<const void> owner);

// For consumers that ask for no version. It cannot say that memory must not be written.
absl::StatusOr<dlpack::DLManagedTensor*> ExportUnversionedDlpack(const MutableTensorView& view,
                                                                 std::shared_ptr<const void> owner);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DLPACK_EXPORT_H_
