// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What this build compiles with is what pins.bzl names: the versions that the wheels, the headers, the
// compiler and NCCL's library give of themselves. A toolkit of the user's own (WEIGHT_SYNC_CUDA_PATH)
// may be of another version; of that one it is tested that its parts belong together.
//
// The BUILD file says in the environment where things are: WEIGHT_SYNC_TEST_LIBNCCL, _RESOLVED and
// _NVCC_VERSION (files), and _PINS (the table as JSON).

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"
#include "cub/version.cuh"
#include "cuda.h"
#include "cuda/std/version"
#include "cuda_runtime_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nccl.h"
#include "nlohmann/json.hpp"

namespace weight_sync::cuda_smoke {
namespace {

using ::absl_testing::IsOk;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// CUDA's headers write 13.0 as 13000.
std::string CudaRelease(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

class ResolvedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pins_ = nlohmann::json::parse(Environment("WEIGHT_SYNC_TEST_PINS"), nullptr, false);
    ASSERT_TRUE(pins_.is_object());
    resolved_ =
        nlohmann::json::parse(Read(Environment("WEIGHT_SYNC_TEST_RESOLVED")), nullptr, false);
    ASSERT_TRUE(resolved_.is_object());
  }

  bool pinned() const { return resolved_["source"] == "wheels"; }

  std::string Pin(const char* component, const char* key = "version") const {
    return pins_[component][key].get<std::string>();
  }

  nlohmann::json pins_;
  nlohmann::json resolved_;
};

TEST_F(ResolvedTest, WheelsAreThePinnedOnes) {
  if (!pinned()) GTEST_SKIP() << "the toolkit is that of " << resolved_["source"];
  std::map<std::string, std::string> expected;
  for (const auto& pin : pins_) expected[pin["package"]] = pin["version"];
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ((resolved_["packages"].get<std::map<std::string, std::string>>()), expected);
}

TEST_F(ResolvedTest, CompilerAndHeadersAreOfOneRelease) {
  const std::string said = Read(Environment("WEIGHT_SYNC_TEST_NVCC_VERSION"));
  EXPECT_THAT(said, HasSubstr(absl::StrCat("release ", CudaRelease(CUDA_VERSION), ", V")));
  EXPECT_EQ(CUDART_VERSION, CUDA_VERSION);
  if (pinned()) {
    EXPECT_THAT(said, HasSubstr(absl::StrCat(", V", Pin("nvcc"), "\n")));
    EXPECT_THAT(Pin("cudart"), StartsWith(CudaRelease(CUDART_VERSION) + "."));
  }
}

TEST_F(ResolvedTest, CcclIsOfOneVersion) {
  const std::string version =
      absl::StrCat(CCCL_MAJOR_VERSION, ".", CCCL_MINOR_VERSION, ".", CCCL_PATCH_VERSION);
  EXPECT_EQ(CUB_MAJOR_VERSION, CCCL_MAJOR_VERSION);
  EXPECT_EQ(CUB_MINOR_VERSION, CCCL_MINOR_VERSION);
  if (pinned()) {
    EXPECT_EQ(version, Pin("cccl", "header_version"));
  }
}

TEST_F(ResolvedTest, NcclsLibraryIsThatOfItsHeader) {
  const std::vector<std::string> names = {Environment("WEIGHT_SYNC_TEST_LIBNCCL")};
  const auto library = base::DynamicLibrary::Open(names);
  ASSERT_THAT(library.status(), IsOk());
  const auto get_version = library->Symbol<decltype(ncclGetVersion)>("ncclGetVersion");
  ASSERT_THAT(get_version.status(), IsOk());
  int version = 0;
  ASSERT_EQ((*get_version)(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
  if (pinned()) {
    EXPECT_EQ(absl::StrCat(NCCL_MAJOR, ".", NCCL_MINOR, ".", NCCL_PATCH), Pin("nccl"));
  }
}

}  // namespace
}  // namespace weight_sync::cuda_smoke
