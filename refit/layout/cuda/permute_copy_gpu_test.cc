// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The kernel itself, on a GPU, against the CPU's kernels.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/cuda_api.h"
#include "refit/layout/cuda/cuda_copy_program.h"
#include "refit/layout/cuda/permute_copy_kernel.h"
#include "refit/layout/cuda/random_programs.h"

namespace weight_sync::refit::cuda {
namespace {

using ::absl_testing::IsOk;

constexpr unsigned char kPoison = 0xa5;

TEST(PermuteCopyGpuTest, BucketsAreTheCpus) {
  const absl::StatusOr<CudaApi> loaded = CudaApi::Load();
  ASSERT_THAT(loaded.status(), IsOk());
  const CudaApi& cuda = *loaded;
  ASSERT_THAT(cuda.Check(cuda.init(0), "cuInit"), IsOk());
  CudaDevice device = 0;
  ASSERT_THAT(cuda.Check(cuda.device_get(&device, 0), "cuDeviceGet of GPU 0"), IsOk());
  CudaContext context = nullptr;
  ASSERT_THAT(cuda.Check(cuda.primary_ctx_retain(&context, device), "cuDevicePrimaryCtxRetain"),
              IsOk());
  ASSERT_THAT(cuda.Check(cuda.ctx_set_current(context), "cuCtxSetCurrent"), IsOk());
  CudaStream stream = nullptr;
  ASSERT_THAT(cuda.Check(cuda.stream_create(&stream, kCudaStreamNonBlocking), "cuStreamCreate"),
              IsOk());

  std::mt19937 rng(13);
  for (int round = 0; round < 100; ++round) {
    const RandomProgram random = MakeRandomProgram(rng);
    auto program = CudaCopyProgram::Create(cuda, random.program, PermuteCopyFatbin());
    ASSERT_THAT(program, IsOk());
    std::vector<CudaDevicePointer> memory, arrays;
    for (size_t i = 0; i < random.arrays.size(); ++i) {
      const std::vector<std::byte>& array = random.arrays[i];
      ASSERT_THAT(cuda.Check(cuda.mem_alloc(&memory.emplace_back(), array.size()), "cuMemAlloc"),
                  IsOk());
      ASSERT_THAT(
          cuda.Check(cuda.memcpy_htod_async(memory.back(), array.data(), array.size(), stream),
                     "cuMemcpyHtoDAsync"),
          IsOk());
      arrays.push_back(memory.back() + static_cast<uint64_t>(random.first[i]));
    }
    ASSERT_THAT((*program)->Bind(arrays, stream), IsOk());
    for (int b = 0; b < random.program.buckets(); ++b) {
      const auto bytes = static_cast<size_t>(random.bucket_bytes[static_cast<size_t>(b)]) + 64;
      std::vector<std::byte> want(bytes, std::byte{kPoison}), got(bytes);
      random.program.Run(b, random.bases(), want.data());
      CudaDevicePointer dst = 0;
      ASSERT_THAT(cuda.Check(cuda.mem_alloc(&dst, bytes), "cuMemAlloc"), IsOk());
      ASSERT_THAT(cuda.Check(cuda.memset_d8_async(dst, kPoison, bytes, stream), "cuMemsetD8Async"),
                  IsOk());
      ASSERT_THAT((*program)->Run(b, dst, stream), IsOk());
      ASSERT_THAT(
          cuda.Check(cuda.memcpy_dtoh_async(got.data(), dst, bytes, stream), "cuMemcpyDtoHAsync"),
          IsOk());
      ASSERT_THAT(cuda.Check(cuda.stream_synchronize(stream), "cuStreamSynchronize"), IsOk());
      ASSERT_TRUE(got == want) << "round " << round << " bucket " << b;
      ASSERT_THAT(cuda.Check(cuda.mem_free(dst), "cuMemFree"), IsOk());
    }
    for (const CudaDevicePointer array : memory) {
      ASSERT_THAT(cuda.Check(cuda.mem_free(array), "cuMemFree"), IsOk());
    }
  }
  EXPECT_THAT(cuda.Check(cuda.stream_destroy(stream), "cuStreamDestroy"), IsOk());
  EXPECT_THAT(cuda.Check(cuda.primary_ctx_release(device), "cuDevicePrimaryCtxRelease"), IsOk());
}

}  // namespace
}  // namespace weight_sync::refit::cuda
