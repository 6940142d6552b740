// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/c_api/loans.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/tensor/dlpack_abi.h"
#include "weight_sync/c_api/arrays.h"
#include "weight_sync/c_api/sized_struct.h"

namespace weight_sync::c_api {
namespace {

using refit::DlpackTensor;

absl::StatusOr<DlpackTensor> BoundTwice(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("DLPack tensor '", name, "': it is bound twice: each can be given back once"));
}

}  // namespace

std::shared_ptr<const void> GivenBackBy(void (*release)(void*), void* context) {
  if (release == nullptr) return nullptr;
  return std::shared_ptr<const void>(context, release);
}

absl::StatusOr<Loans> Loans::Take(const ws_binding* bindings, size_t count) {
  Loans loans;
  if (count == 0) return loans;
  WS_RETURN_IF_ERROR(CheckSize("binding", bindings));
  absl::flat_hash_set<const void*> seen;
  absl::Status first;
  for (size_t i = 0; i < count; ++i) {
    const ws_binding* const given = At(bindings, i);
    ws_binding binding = {};
    std::memcpy(&binding, given, std::min(bindings->struct_size, sizeof(binding)));
    absl::Status status = loans.Take(binding, seen);
    if (status.ok() && given->struct_size != bindings->struct_size) {
      status = absl::InvalidArgumentError(
          absl::StrCat("array '", binding.name, "': its struct_size is not the first's"));
    }
    if (status.ok()) status = ReadSized("binding", given, &binding);
    first.Update(status);
  }
  if (!first.ok()) return first;
  return loans;
}

absl::Status Loans::Take(const ws_binding& binding, absl::flat_hash_set<const void*>& seen) {
  const absl::string_view name = binding.name == nullptr ? "" : binding.name;
  // Everything is taken before anything is judged.
  std::shared_ptr<const void> memory = GivenBackBy(binding.release, binding.context);
  std::vector<absl::StatusOr<DlpackTensor>> tensors;
  if (binding.dlpack != nullptr) {
    tensors.push_back(
        seen.insert(binding.dlpack).second
            ? DlpackTensor::Import(
                  name, reinterpret_cast<refit::dlpack::DLManagedTensorVersioned*>(binding.dlpack))
            : BoundTwice(name));
  }
  if (binding.dlpack_unversioned != nullptr) {
    tensors.push_back(
        seen.insert(binding.dlpack_unversioned).second
            ? DlpackTensor::Import(name, reinterpret_cast<refit::dlpack::DLManagedTensor*>(
                                             binding.dlpack_unversioned))
            : BoundTwice(name));
  }

  if (name.empty()) return absl::InvalidArgumentError("an array is bound without a name");
  const bool is_memory = binding.data != nullptr || memory != nullptr || tensors.empty();
  if (tensors.size() + (is_memory ? 1 : 0) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", name, "': it is bound as a DLPack tensor and as something else: choose one"));
  }
  if (!is_memory) {
    WS_RETURN_IF_ERROR(tensors.front().status());
    tensors_.push_back(*std::move(tensors.front()));
    arrays_.push_back({std::string(name), binding.mesh_rank, tensors_.back().view()});
    return absl::OkStatus();
  }
  memory_.push_back(std::move(memory));
  auto spec = ReadSpec(binding.dtype, binding.rank, binding.shape, binding.strides);
  if (!spec.ok()) return base::Prefixed(absl::StrCat("array '", name, "'"), spec.status());
  // It is only read.
  const auto view = ViewMemory(const_cast<void*>(binding.data), binding.byte_offset, *spec);
  if (!view.ok()) return base::Prefixed(absl::StrCat("array '", name, "'"), view.status());
  arrays_.push_back({std::string(name), binding.mesh_rank, *view});
  return absl::OkStatus();
}

}  // namespace weight_sync::c_api
