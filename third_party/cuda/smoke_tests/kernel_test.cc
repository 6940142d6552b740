// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A kernel that cuda_library embedded is loaded through the driver's table, launched, and computes
// what it says.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/cuda_api.h"
#include "third_party/cuda/smoke_tests/add.h"
#include "third_party/cuda/smoke_tests/add_arguments.h"

namespace weight_sync::cuda_smoke {
namespace {

using ::absl_testing::IsOk;
using ::weight_sync::refit::CudaApi;
using ::weight_sync::refit::CudaContext;
using ::weight_sync::refit::CudaDevice;
using ::weight_sync::refit::CudaDevicePointer;
using ::weight_sync::refit::CudaFunction;
using ::weight_sync::refit::CudaModule;
using ::weight_sync::refit::CudaStream;

constexpr unsigned int kThreads = 256;
constexpr size_t kCount = 1000003;  // no multiple of a block
constexpr size_t kUntouched = 64;   // behind them, for the kernel to leave alone

TEST(CudaKernelTest, ComputesWhatItSays) {
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
  ASSERT_THAT(
      cuda.Check(cuda.stream_create(&stream, refit::kCudaStreamNonBlocking), "cuStreamCreate"),
      IsOk());

  std::vector<std::uint32_t> before(kCount + kUntouched);
  for (size_t i = 0; i < before.size(); ++i) {
    before[i] = static_cast<std::uint32_t>(i) * 2654435761u + 12345u;
  }
  const size_t bytes = before.size() * sizeof(before[0]);
  CudaDevicePointer values = 0;
  ASSERT_THAT(cuda.Check(cuda.mem_alloc(&values, bytes), "cuMemAlloc"), IsOk());
  ASSERT_THAT(
      cuda.Check(cuda.memcpy_htod_async(values, before.data(), bytes, stream), "cuMemcpyHtoDAsync"),
      IsOk());

  CudaModule module = nullptr;
  ASSERT_THAT(cuda.Check(cuda.module_load_data(&module, AddFatbin().data()), "cuModuleLoadData"),
              IsOk());
  CudaFunction kernel = nullptr;
  ASSERT_THAT(cuda.Check(cuda.module_get_function(&kernel, module, "SquareAndAdd"),
                         "cuModuleGetFunction of SquareAndAdd"),
              IsOk());
  AddArguments arguments{reinterpret_cast<std::uint32_t*>(values), kCount, 77};
  void* parameters[] = {&arguments};
  ASSERT_THAT(cuda.Check(cuda.launch_kernel(kernel, (kCount + kThreads - 1) / kThreads, 1, 1,
                                            kThreads, 1, 1, 0, stream, parameters, nullptr),
                         "cuLaunchKernel of SquareAndAdd"),
              IsOk());

  std::vector<std::uint32_t> after(before.size());
  ASSERT_THAT(
      cuda.Check(cuda.memcpy_dtoh_async(after.data(), values, bytes, stream), "cuMemcpyDtoHAsync"),
      IsOk());
  ASSERT_THAT(cuda.Check(cuda.stream_synchronize(stream), "cuStreamSynchronize"), IsOk());
  for (size_t i = 0; i < before.size(); ++i) {
    const std::uint32_t expected =
        i < kCount ? before[i] * before[i] + static_cast<std::uint32_t>(i) + 77 : before[i];
    ASSERT_EQ(after[i], expected) << "at " << i;
  }

  EXPECT_THAT(cuda.Check(cuda.module_unload(module), "cuModuleUnload"), IsOk());
  EXPECT_THAT(cuda.Check(cuda.mem_free(values), "cuMemFree"), IsOk());
  EXPECT_THAT(cuda.Check(cuda.stream_destroy(stream), "cuStreamDestroy"), IsOk());
  EXPECT_THAT(cuda.Check(cuda.primary_ctx_release(device), "cuDevicePrimaryCtxRelease"), IsOk());
}

}  // namespace
}  // namespace weight_sync::cuda_smoke
