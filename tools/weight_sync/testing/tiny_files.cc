// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/testing/tiny_files.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::tools {

using refit::DType;
using refit::Shape;
using refit::TensorView;
using refit::testing::Elements;
using refit::testing::Storage;

std::string NewFolder() {
  static int folders = 0;
  std::string folder = absl::StrCat(::testing::TempDir(), "/folder_", ++folders);
  std::filesystem::create_directories(folder);
  return folder;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void WriteTensors(const std::vector<Elements>& tensors, const std::string& folder, Storage storage,
                  const std::function<std::string(const std::string&)>& rename) {
  const DType dtype = storage == Storage::kBF16 ? DType::kBF16 : DType::kF32;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<refit::NamedTensor> named;
  for (const Elements& tensor : tensors) {
    // Padding must not be read, so it holds what would show.
    bytes.push_back(Bytes(tensor, storage, std::byte{0xa5}));
    named.push_back(
        {rename ? rename(tensor.name) : tensor.name,
         TensorView::Contiguous(bytes.back().data(), dtype, *Shape::Create(tensor.shape))});
  }
  CHECK_OK(refit::WriteSafetensors(folder + "/model.safetensors", named));
}

void WriteModel(const refit::testing::ModelSpec& model, const std::vector<Elements>& tensors,
                const std::string& folder) {
  WriteTensors(tensors, folder);
  std::ofstream(folder + "/config.json") << refit::testing::HubConfigJson(model);
}

void ExpectTensors(const std::string& folder, const std::vector<Elements>& tensors,
                   Storage storage) {
  const auto checkpoint = refit::Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors().size(), tensors.size());
  for (const Elements& tensor : tensors) {
    const refit::NamedTensor* const held = checkpoint->Find(tensor.name);
    ASSERT_NE(held, nullptr) << tensor.name;
    EXPECT_EQ(held->tensor.dtype(), storage == Storage::kBF16 ? DType::kBF16 : DType::kF32);
    EXPECT_EQ(held->tensor.shape(), *Shape::Create(tensor.shape)) << tensor.name;
    const std::vector<std::byte> bytes = Bytes(tensor, storage);
    ASSERT_EQ(held->tensor.num_bytes(), static_cast<int64_t>(bytes.size())) << tensor.name;
    EXPECT_EQ(std::memcmp(held->tensor.data(), bytes.data(), bytes.size()), 0) << tensor.name;
  }
}

base::ProgramResult RunCommand(const std::string& arguments, const std::string& prepare) {
  return base::RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat(prepare, " && exec tools/weight_sync/weight_sync ", arguments)});
}

nlohmann::json RunForJson(int status, const std::string& arguments, const std::string& prepare) {
  const base::ProgramResult answer = RunCommand(absl::StrCat(arguments, " --json"), prepare);
  EXPECT_EQ(answer.exit_code, status) << answer.output;
  nlohmann::json out = nlohmann::json::parse(answer.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(out.is_object()) << answer.output;
  return out.is_object() ? out : nlohmann::json::object();
}

}  // namespace weight_sync::tools
