// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/test_files.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/log/absl_check.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {

std::string NewTestDirectory() {
  std::string path = absl::StrCat(testing::TempDir(), "/checkpoint-XXXXXX");
  ABSL_CHECK(mkdtemp(path.data()) != nullptr) << path;
  return path;
}

void WriteTestFile(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  ABSL_CHECK(file.good()) << path;
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ABSL_CHECK(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<std::string> ListTestDirectory(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string SafetensorsBytes(absl::string_view header, absl::string_view data) {
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return absl::StrCat(length, header, data);
}

std::string LogicalBytes(const TensorView& tensor) {
  std::string bytes(static_cast<size_t>(tensor.num_bytes()), '\0');
  CopyElements(tensor, 0, tensor.num_bytes() / StorageElementBytes(tensor.dtype()),
               reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

TensorView TestTensors::Make(DType dtype, const Shape& shape) {
  std::vector<std::byte>& bytes = storage_.emplace_back(ByteSize(dtype, shape).value());
  for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
  return TensorView::Contiguous(bytes.data(), dtype, shape);
}

}  // namespace weight_sync::refit
