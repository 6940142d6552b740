// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NamedTensor: a tensor of a checkpoint, as readers give it and writers take it. The name is owned,
// the bytes are not (see TensorView).
//
// Example:
//
//   for (const NamedTensor& t : file.tensors()) LOG(INFO) << t.name << " " << t.tensor.shape();

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_NAMED_TENSOR_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_NAMED_TENSOR_H_

#include <string>

#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_NAMED_TENSOR_H_
