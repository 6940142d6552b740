// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The program against a driver's table made for the test, whose memory is the host's and whose
// launches run the grid on the CPU.

#include "refit/layout/cuda/cuda_copy_program.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/layout/cuda/random_programs.h"
#include "refit/layout/cuda/simulated_grid.h"

namespace weight_sync::refit::cuda {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

constexpr std::byte kPoison{0xa5};
constexpr std::byte kImage[4] = {};

// What the driver holds, and which call fails.
struct Driver {
  int allocations = 0;
  int modules = 0;
  int launches = 0;
  int allocations_left = 1000;
};
Driver driver;

CudaApi MadeDriver() {
  driver = Driver();
  CudaApi cuda;
  cuda.library = "a driver made for the test";
  cuda.get_error_name = [](CudaResult, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CudaResult::kSuccess;
  };
  cuda.get_error_string = [](CudaResult, const char** text) {
    *text = "out of memory";
    return CudaResult::kSuccess;
  };
  cuda.module_load_data = [](CudaModule* module, const void* image) {
    if (image != kImage) return CudaResult::kInvalidValue;
    ++driver.modules;
    *module = reinterpret_cast<CudaModule>(&driver);
    return CudaResult::kSuccess;
  };
  cuda.module_unload = [](CudaModule) {
    --driver.modules;
    return CudaResult::kSuccess;
  };
  cuda.module_get_function = [](CudaFunction* function, CudaModule, const char* name) {
    if (name != std::string("PermuteCopyKernel")) return CudaResult::kInvalidValue;
    *function = reinterpret_cast<CudaFunction>(&driver);
    return CudaResult::kSuccess;
  };
  cuda.mem_alloc = [](CudaDevicePointer* pointer, size_t bytes) {
    if (driver.allocations_left-- == 0) return CudaResult::kOutOfMemory;
    ++driver.allocations;
    *pointer = reinterpret_cast<CudaDevicePointer>(std::malloc(bytes));
    return CudaResult::kSuccess;
  };
  cuda.mem_free = [](CudaDevicePointer pointer) {
    --driver.allocations;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers.
    std::free(reinterpret_cast<void*>(pointer));
    return CudaResult::kSuccess;
  };
  cuda.memcpy_htod_async = [](CudaDevicePointer to, const void* from, size_t bytes, CudaStream) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the same.
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CudaResult::kSuccess;
  };
  cuda.stream_synchronize = [](CudaStream) { return CudaResult::kSuccess; };
  cuda.launch_kernel = [](CudaFunction, unsigned int grid_x, unsigned int grid_y,
                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                          unsigned int block_z, unsigned int, CudaStream, void** parameters,
                          void**) {
    if (grid_x == 0 || grid_y * grid_z * block_y * block_z != 1 || block_x != kThreads) {
      return CudaResult::kInvalidValue;
    }
    ++driver.launches;
    SimulateGrid(*static_cast<const PermuteArguments*>(parameters[0]), grid_x, DeviceMemory());
    return CudaResult::kSuccess;
  };
  return cuda;
}

TEST(CudaCopyProgramTest, BucketsAreTheCpusAndOneLaunchEach) {
  std::mt19937 rng(12);
  const CudaApi cuda = MadeDriver();
  for (int round = 0; round < 60; ++round) {
    const RandomProgram random = MakeRandomProgram(rng);
    auto program = CudaCopyProgram::Create(cuda, random.program, kImage);
    ASSERT_THAT(program, IsOk());
    ASSERT_EQ((*program)->buckets(), random.program.buckets());
    std::vector<CudaDevicePointer> arrays;
    for (const std::byte* base : random.bases()) {
      arrays.push_back(reinterpret_cast<CudaDevicePointer>(base));
    }
    ASSERT_THAT((*program)->Bind(arrays, nullptr), IsOk());
    for (int b = random.program.buckets() - 1; b >= 0; --b) {
      std::vector<std::byte> want(
          static_cast<size_t>(random.bucket_bytes[static_cast<size_t>(b)]) + 64, kPoison);
      std::vector<std::byte> got = want;
      random.program.Run(b, random.bases(), want.data());
      const int launches = driver.launches;
      ASSERT_THAT((*program)->Run(b, reinterpret_cast<CudaDevicePointer>(got.data()), nullptr),
                  IsOk());
      ASSERT_TRUE(got == want) << "round " << round << " bucket " << b;
      EXPECT_LE(driver.launches - launches, 1);
    }
  }
  EXPECT_GT(driver.launches, 60);
  EXPECT_EQ(driver.allocations, 0);
  EXPECT_EQ(driver.modules, 0);
}

// Two of four bytes, from an array of its own each.
CopyProgram TwoCopies() {
  CopyProgram copies;
  copies.StartBucket();
  const CopyDim four[] = {{4, 1, 1}};
  copies.Append(0, 0, four, 1, Conversion::kNone, 0);
  copies.Append(1, 0, four, 1, Conversion::kNone, 4);
  return copies;
}

TEST(CudaCopyProgramTest, ArraysMayBeReplaced) {
  const CudaApi cuda = MadeDriver();
  auto program = CudaCopyProgram::Create(cuda, TwoCopies(), kImage);
  ASSERT_THAT(program, IsOk());
  char dst[9] = {};
  const auto address = [](const char* memory) {
    return reinterpret_cast<CudaDevicePointer>(memory);
  };
  EXPECT_THAT((*program)->Run(0, address(dst), nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT((*program)->Bind({address("once")}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 arrays, and 1")));
  ASSERT_THAT((*program)->Bind({address("once"), address("more")}, nullptr), IsOk());
  ASSERT_THAT((*program)->Run(0, address(dst), nullptr), IsOk());
  EXPECT_STREQ(dst, "oncemore");
  ASSERT_THAT((*program)->Bind({address("and "), address("over")}, nullptr), IsOk());
  ASSERT_THAT((*program)->Run(0, address(dst), nullptr), IsOk());
  EXPECT_STREQ(dst, "and over");
  EXPECT_THAT((*program)->Run(1, address(dst), nullptr), StatusIs(absl::StatusCode::kInternal));
}

TEST(CudaCopyProgramTest, WhatWasMadeIsGivenBackWhenMemoryEnds) {
  for (int allocations = 0; allocations < 2; ++allocations) {
    const CudaApi cuda = MadeDriver();
    driver.allocations_left = allocations;
    EXPECT_THAT(CudaCopyProgram::Create(cuda, TwoCopies(), kImage),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cuMemAlloc")));
    EXPECT_EQ(driver.allocations, 0);
    EXPECT_EQ(driver.modules, 0);
  }
}

TEST(CudaCopyProgramTest, ABucketThatNoLaunchTakesIsRefused) {
  const CudaApi cuda = MadeDriver();
  CopyProgram copies;
  copies.StartBucket();
  const CopyDim huge[] = {{int64_t{1} << 48, 1, 1}};
  copies.Append(0, 0, huge, 1, Conversion::kNone, 0);
  EXPECT_THAT(CudaCopyProgram::Create(cuda, copies, kImage),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bucket 0 takes")));
}

}  // namespace
}  // namespace weight_sync::refit::cuda
