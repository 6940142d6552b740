// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DlpackTensor: a tensor that another library lends by DLPack, as a view of that library's own
// memory, without a copy. Its deleter is called once, on whatever thread: when the DlpackTensor goes,
// or in Import() if that fails. A trainer that lends its parameters pays for a loan that is held too
// long: jax, for one, then no longer reuses the memory of a donated array.
//
// Host memory only (CPU, and CUDA's page-locked host memory). A null `strides` is row-major. torch's
// float4_e2m1fn_x2, two elements to one of DLPack's (2 lanes), becomes F4 with a last dimension twice
// as long.
//
// Errors name the tensor. Unimplemented: memory of a device, elements that have no DType, another
// major version of DLPack. InvalidArgument: null pointers, negative or too many dimensions, sizes or
// offsets that overflow, and data that is not aligned to its elements.
//
// Movable, not copyable. Thread-compatible.
//
//   WS_ASSIGN_OR_RETURN(DlpackTensor tensor, DlpackTensor::Import("layers.0.attn.q_proj.w", managed));
//   tensor.view();                          // valid while `tensor` lives

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DLPACK_TENSOR_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DLPACK_TENSOR_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/tensor/dlpack_abi.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

class DlpackTensor {
 public:
  // Takes `managed` also where it fails.
  static absl::StatusOr<DlpackTensor> Import(absl::string_view name,
                                             dlpack::DLManagedTensorVersioned* managed);
  static absl::StatusOr<DlpackTensor> Import(absl::string_view name,
                                             dlpack::DLManagedTensor* managed);

  const TensorView& view() const { return view_; }

  // Whether its owner forbids writing. Never said without a version.
  bool read_only() const { return read_only_; }

 private:
  // Calls the deleter.
  struct Return {
    void operator()(dlpack::DLManagedTensorVersioned* managed) const;
    void operator()(dlpack::DLManagedTensor* managed) const;
  };
  template <typename Managed>
  using Loan = std::unique_ptr<Managed, Return>;

  DlpackTensor(const TensorView& view, bool read_only, Loan<dlpack::DLManagedTensorVersioned> loan)
      : view_(view), read_only_(read_only), versioned_(std::move(loan)) {}
  DlpackTensor(const TensorView& view, Loan<dlpack::DLManagedTensor> loan)
      : view_(view), unversioned_(std::move(loan)) {}

  TensorView view_;
  bool read_only_ = false;
  Loan<dlpack::DLManagedTensorVersioned> versioned_;  // one of the two
  Loan<dlpack::DLManagedTensor> unversioned_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DLPACK_TENSOR_H_
