// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/scratch_tensors.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::tools {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using refit::DType;
using refit::TensorSpec;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Folder(const char* name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(ScratchTensorsTest, EachHasItsOwnZerosInAFileWithoutAName) {
  const std::string folder = Folder("zeros");
  const std::vector<TensorSpec> specs = {
      {"a", {3, 5}, DType::kBF16}, {"none", {0, 5}, DType::kF32}, {"b", {}, DType::kF32}};
  auto scratch = ScratchTensors::Create(folder, specs);
  ASSERT_THAT(scratch, IsOk());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  ASSERT_EQ(scratch->tensors().size(), 3u);
  for (size_t i = 0; i < specs.size(); ++i) {
    const refit::MutableTensorView& tensor = scratch->tensors()[i];
    EXPECT_EQ(tensor.shape(), specs[i].shape);
    EXPECT_EQ(tensor.dtype(), specs[i].dtype);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 64, 0u);
    for (int64_t k = 0; k < tensor.num_bytes(); ++k) EXPECT_EQ(tensor.data()[k], std::byte{0});
    std::memset(tensor.data(), static_cast<int>(i) + 1, static_cast<size_t>(tensor.num_bytes()));
  }
  const ScratchTensors moved = *std::move(scratch);
  EXPECT_EQ(moved.tensors()[0].data()[29], std::byte{1});
  EXPECT_EQ(moved.tensors()[2].data()[0], std::byte{3});
}

TEST(ScratchTensorsTest, NoTensorsAreFine) {
  EXPECT_THAT(ScratchTensors::Create(Folder("none"), {}), IsOk());
}

TEST(ScratchTensorsTest, TellsMemoryFromDisk) {
  const std::vector<TensorSpec> specs = {{"a", {3}, DType::kBF16}};
  const auto scratch = ScratchTensors::Create("/dev/shm", specs);
  ASSERT_THAT(scratch, IsOk());
  EXPECT_TRUE(scratch->in_memory());
}

TEST(ScratchTensorsTest, ALackOfSpaceNamesWhatIsThereAndTheOption) {
  const std::vector<TensorSpec> specs = {{"a", {int64_t{1} << 50}, DType::kBF16}};
  EXPECT_THAT(ScratchTensors::Create(Folder("large"), specs),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("takes 2251799.8 GB"), HasSubstr(" free; "),
                             HasSubstr("--scratch"))));
}

TEST(ScratchTensorsTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(ScratchTensors::Create("/nowhere/at/all", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'/nowhere/at/all'")));
}

}  // namespace
}  // namespace weight_sync::tools
