// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NCCL, by its own header and loaded at run time, adds up what two GPUs hold. The GPUs are driven
// through the driver's table alone: NCCL's own runtime uses the same primary contexts, and a driver's
// stream is a stream of the runtime (CUDA Runtime API, "Interactions with the CUDA Driver API").

#include "nccl.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "base/dynamic_library.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/device/cuda_api.h"

namespace weight_sync::cuda_smoke {
namespace {

using ::absl_testing::IsOk;
using ::weight_sync::refit::CudaApi;
using ::weight_sync::refit::CudaContext;
using ::weight_sync::refit::CudaDevice;
using ::weight_sync::refit::CudaDevicePointer;
using ::weight_sync::refit::CudaStream;

constexpr int kRanks = 2;
constexpr size_t kCount = 1000003;
constexpr size_t kBytes = kCount * sizeof(std::uint32_t);

// The functions used here, by the types that nccl.h gives them.
struct Nccl {
  decltype(&ncclCommInitAll) comm_init_all;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
};

absl::StatusOr<Nccl> LoadNccl() {
  // Set by the BUILD file: the library that nccl.h belongs to.
  const char* path = std::getenv("WEIGHT_SYNC_TEST_LIBNCCL");
  const std::vector<std::string> names = {path == nullptr ? "libnccl.so.2" : path};
  WS_ASSIGN_OR_RETURN(const auto library, base::DynamicLibrary::Open(names));
  Nccl nccl;
  WS_ASSIGN_OR_RETURN(nccl.comm_init_all,
                      library.Symbol<decltype(ncclCommInitAll)>("ncclCommInitAll"));
  WS_ASSIGN_OR_RETURN(nccl.comm_destroy,
                      library.Symbol<decltype(ncclCommDestroy)>("ncclCommDestroy"));
  WS_ASSIGN_OR_RETURN(nccl.group_start, library.Symbol<decltype(ncclGroupStart)>("ncclGroupStart"));
  WS_ASSIGN_OR_RETURN(nccl.group_end, library.Symbol<decltype(ncclGroupEnd)>("ncclGroupEnd"));
  WS_ASSIGN_OR_RETURN(nccl.all_reduce, library.Symbol<decltype(ncclAllReduce)>("ncclAllReduce"));
  return nccl;
}

struct Gpu {
  CudaDevice device = 0;
  CudaContext context = nullptr;
  CudaStream stream = nullptr;
  CudaDevicePointer send = 0;
  CudaDevicePointer receive = 0;
};

std::uint32_t ValueOf(int rank, size_t i) {
  return static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u;
}

absl::StatusOr<Gpu> PrepareGpu(const CudaApi& cuda, int rank) {
  Gpu gpu;
  WS_RETURN_IF_ERROR(cuda.Check(cuda.device_get(&gpu.device, rank), "cuDeviceGet"));
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.primary_ctx_retain(&gpu.context, gpu.device), "cuDevicePrimaryCtxRetain"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.ctx_set_current(gpu.context), "cuCtxSetCurrent"));
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.stream_create(&gpu.stream, refit::kCudaStreamNonBlocking), "cuStreamCreate"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_alloc(&gpu.send, kBytes), "cuMemAlloc"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_alloc(&gpu.receive, kBytes), "cuMemAlloc"));
  std::vector<std::uint32_t> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = ValueOf(rank, i);
  WS_RETURN_IF_ERROR(
      cuda.Check(cuda.memcpy_htod_async(gpu.send, values.data(), kBytes, gpu.stream), "to GPU"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.stream_synchronize(gpu.stream), "to GPU"));
  return gpu;
}

absl::StatusOr<std::vector<std::uint32_t>> ReadBack(const CudaApi& cuda, const Gpu& gpu) {
  std::vector<std::uint32_t> values(kCount);
  WS_RETURN_IF_ERROR(cuda.Check(cuda.ctx_set_current(gpu.context), "cuCtxSetCurrent"));
  WS_RETURN_IF_ERROR(cuda.Check(
      cuda.memcpy_dtoh_async(values.data(), gpu.receive, kBytes, gpu.stream), "from GPU"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.stream_synchronize(gpu.stream), "from GPU"));
  return values;
}

absl::Status Release(const CudaApi& cuda, const Gpu& gpu) {
  WS_RETURN_IF_ERROR(cuda.Check(cuda.ctx_set_current(gpu.context), "cuCtxSetCurrent"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_free(gpu.send), "cuMemFree"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.mem_free(gpu.receive), "cuMemFree"));
  WS_RETURN_IF_ERROR(cuda.Check(cuda.stream_destroy(gpu.stream), "cuStreamDestroy"));
  return cuda.Check(cuda.primary_ctx_release(gpu.device), "cuDevicePrimaryCtxRelease");
}

TEST(NcclTest, AddsUpWhatTwoGpusHold) {
  const absl::StatusOr<CudaApi> cuda = CudaApi::Load();
  ASSERT_THAT(cuda.status(), IsOk());
  ASSERT_THAT(cuda->Check(cuda->init(0), "cuInit"), IsOk());
  int gpus_here = 0;
  ASSERT_THAT(cuda->Check(cuda->device_get_count(&gpus_here), "cuDeviceGetCount"), IsOk());
  ASSERT_GE(gpus_here, kRanks) << "this test needs two GPUs; --config=gpu leaves it out";
  const absl::StatusOr<Nccl> nccl = LoadNccl();
  ASSERT_THAT(nccl.status(), IsOk());

  std::vector<Gpu> gpus;
  for (int rank = 0; rank < kRanks; ++rank) {
    absl::StatusOr<Gpu> gpu = PrepareGpu(*cuda, rank);
    ASSERT_THAT(gpu.status(), IsOk());
    gpus.push_back(*gpu);
  }
  ncclComm_t communicators[kRanks] = {};
  ASSERT_EQ(nccl->comm_init_all(communicators, kRanks, nullptr), ncclSuccess);

  ASSERT_EQ(nccl->group_start(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Gpu& gpu = gpus[rank];
    EXPECT_EQ(nccl->all_reduce(reinterpret_cast<const void*>(gpu.send),
                               reinterpret_cast<void*>(gpu.receive), kCount, ncclUint32, ncclSum,
                               communicators[rank], gpu.stream),
              ncclSuccess);
  }
  ASSERT_EQ(nccl->group_end(), ncclSuccess);

  for (int rank = 0; rank < kRanks; ++rank) {
    const absl::StatusOr<std::vector<std::uint32_t>> sums = ReadBack(*cuda, gpus[rank]);
    ASSERT_THAT(sums.status(), IsOk());
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ((*sums)[i], ValueOf(0, i) + ValueOf(1, i)) << "rank " << rank << " at " << i;
    }
  }

  for (ncclComm_t communicator : communicators) {
    EXPECT_EQ(nccl->comm_destroy(communicator), ncclSuccess);
  }
  for (const Gpu& gpu : gpus) EXPECT_THAT(Release(*cuda, gpu), IsOk());
}

}  // namespace
}  // namespace weight_sync::cuda_smoke
