// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Files and tensors for the tests of this folder.

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_TEST_FILES_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_TEST_FILES_H_

#include <cstddef>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

// A new, empty directory under TEST_TMPDIR.
std::string NewTestDirectory();

void WriteTestFile(const std::string& path, absl::string_view bytes);
std::string ReadTestFile(const std::string& path);

// The names in a directory, sorted, hidden ones too.
std::vector<std::string> ListTestDirectory(const std::string& directory);

// A file of the safetensors format: the header's length, the header as it is given, the data.
std::string SafetensorsBytes(absl::string_view header, absl::string_view data);

// The tensor's values, densely.
std::string LogicalBytes(const TensorView& tensor);

// Tensors with random bytes that live as long as this object.
class TestTensors {
 public:
  explicit TestTensors(int seed) : random_(seed) {}

  TensorView Make(DType dtype, const Shape& shape);

  // Makes and keeps a tensor.
  void Add(const std::string& name, DType dtype, const Shape& shape) {
    tensors_.push_back({name, Make(dtype, shape)});
  }
  void Add(const std::string& name, const TensorView& tensor) {
    tensors_.push_back({name, tensor});
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
  std::deque<std::vector<std::byte>> storage_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_TEST_FILES_H_
