// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// cuda_library embeds exactly the bytes of its fat binary. Needs no GPU.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "third_party/cuda/smoke_tests/add.h"

namespace weight_sync::cuda_smoke {
namespace {

TEST(CudaLibraryTest, EmbedsItsFatBinary) {
  // Set by the BUILD file.
  const char* path = std::getenv("WEIGHT_SYNC_TEST_FATBIN");
  ASSERT_NE(path, nullptr);
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_FALSE(file.empty());

  const absl::Span<const std::byte> embedded = AddFatbin();
  // Not EXPECT_EQ, which would print kilobytes of machine code.
  EXPECT_TRUE(absl::string_view(reinterpret_cast<const char*>(embedded.data()), embedded.size()) ==
              file);
}

TEST(CudaLibraryTest, AlignsIt) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(AddFatbin().data()) % 64, 0u);
}

}  // namespace
}  // namespace weight_sync::cuda_smoke
