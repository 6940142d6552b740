// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loans: arrays that a trainer lends for one version, as they came through the C ABI. Each is given
// back exactly once: when the Loans go, or in Take() if that fails.
//
//   WS_ASSIGN_OR_RETURN(Loans loans, Loans::Take(bindings, count));
//   for (const Loans::Array& array : loans.arrays()) Read(array.view);
//
// Movable, not copyable. Thread-compatible.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_LOANS_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_LOANS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "refit/tensor/dlpack_tensor.h"
#include "refit/tensor/tensor_view.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync::c_api {

class Loans {
 public:
  struct Array {
    std::string name;
    int mesh_rank;
    refit::TensorView view;
  };

  Loans() = default;

  // Takes every binding, also where it fails; nothing if their struct_size is too small to say
  // where their pointers are. InvalidArgument or Unimplemented of the first that is wrong, with its
  // name.
  static absl::StatusOr<Loans> Take(const ws_binding* bindings, size_t count);

  const std::vector<Array>& arrays() const { return arrays_; }

 private:
  absl::Status Take(const ws_binding& binding, absl::flat_hash_set<const void*>& seen);

  std::vector<Array> arrays_;
  std::vector<refit::DlpackTensor> tensors_;
  std::vector<std::shared_ptr<const void>> memory_;
};

// Calls `release`, if there is one, when the last copy goes; also where `context` is null.
std::shared_ptr<const void> GivenBackBy(void (*release)(void*), void* context);

}  // namespace weight_sync::c_api

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_C_API_LOANS_H_
