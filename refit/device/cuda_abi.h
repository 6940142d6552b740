// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver's C ABI that weight_sync calls, declared here so that no NVIDIA
// header is needed to build it: types, constants, and the list of functions with the names under
// which libcuda.so.1 exports them (CUDA driver API reference; cuda.h of CUDA 13.0, whose names all
// exist since CUDA 11.4). cuda_abi_test compares all of it with the real cuda.h, part by part.
//
// Everything is in the four lists below and in the types before them, so that whoever adds a line
// gets the table's member (cuda_api.h), its look-up and its tests with it. A Cuda* type may be
// passed where cuda.h wants its own: the handles are the same types, the others have the same
// layout.

#ifndef WEIGHT_SYNC_REFIT_DEVICE_CUDA_ABI_H_
#define WEIGHT_SYNC_REFIT_DEVICE_CUDA_ABI_H_

#include <cstddef>
#include <cstdint>

// What the driver's handles point to, under its own names: a cudaStream_t or CUstream of the
// trainer's is a CudaStream without a cast.
struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;

namespace weight_sync::refit {

using CudaDevice = int;
using CudaDevicePointer = unsigned long long;  // NOLINT(runtime/int): as the driver declares it
using CudaContext = CUctx_st*;
using CudaEvent = CUevent_st*;
using CudaFunction = CUfunc_st*;
using CudaModule = CUmod_st*;
using CudaStream = CUstream_st*;

struct CudaUuid {
  char bytes[16];
};
struct CudaIpcMemHandle {
  char reserved[64];
};
struct CudaIpcEventHandle {
  char reserved[64];
};

// The results that weight_sync tells apart; the driver may answer others.
// X(name here, name in cuda.h, value)
#define WS_CUDA_RESULTS(X)                                           \
  X(kSuccess, CUDA_SUCCESS, 0)                                       \
  X(kInvalidValue, CUDA_ERROR_INVALID_VALUE, 1)                      \
  X(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2)                       \
  X(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED, 3)                  \
  X(kDeinitialized, CUDA_ERROR_DEINITIALIZED, 4)                     \
  X(kStubLibrary, CUDA_ERROR_STUB_LIBRARY, 34)                       \
  X(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE, 46)           \
  X(kNoDevice, CUDA_ERROR_NO_DEVICE, 100)                            \
  X(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE, 101)                  \
  X(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT, 201)                \
  X(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)              \
  X(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
  X(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
  X(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM, 304)              \
  X(kNotReady, CUDA_ERROR_NOT_READY, 600)                            \
  X(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                  \
  X(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)       \
  X(kNotSupported, CUDA_ERROR_NOT_SUPPORTED, 801)                    \
  X(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY, 802)               \
  X(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)   \
  X(kCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)

enum class CudaResult : uint32_t {
#define WS_CUDA_ENUMERATOR_(name, cuda_name, value) name = value,
  WS_CUDA_RESULTS(WS_CUDA_ENUMERATOR_)
#undef WS_CUDA_ENUMERATOR_
};

// What can be asked about a device.
// X(name here, name in cuda.h, value)
#define WS_CUDA_DEVICE_ATTRIBUTES(X)                                           \
  X(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)        \
  X(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
  X(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

enum class CudaDeviceAttribute : uint32_t {
#define WS_CUDA_ENUMERATOR_(name, cuda_name, value) name = value,
  WS_CUDA_DEVICE_ATTRIBUTES(WS_CUDA_ENUMERATOR_)
#undef WS_CUDA_ENUMERATOR_
};

// Flags, all of type unsigned int where a function takes them.
// X(name here, name in cuda.h, value)
#define WS_CUDA_FLAGS(X)                                         \
  X(kCudaHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE, 0x1)       \
  X(kCudaHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE, 0x1) \
  X(kCudaStreamNonBlocking, CU_STREAM_NON_BLOCKING, 0x1)         \
  X(kCudaEventDisableTiming, CU_EVENT_DISABLE_TIMING, 0x2)       \
  X(kCudaEventInterprocess, CU_EVENT_INTERPROCESS, 0x4)          \
  X(kCudaIpcMemLazyEnablePeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 0x1)

#define WS_CUDA_CONSTANT_(name, cuda_name, value) inline constexpr unsigned int name = value;
WS_CUDA_FLAGS(WS_CUDA_CONSTANT_)
#undef WS_CUDA_CONSTANT_

// Every function, all of which return a CudaResult.
// X(member of CudaApi, name in cuda.h, exported symbol, parameters)
#define WS_CUDA_FUNCTIONS(X)                                                                       \
  X(init, cuInit, "cuInit", (unsigned int flags))                                                  \
  X(driver_get_version, cuDriverGetVersion, "cuDriverGetVersion", (int* version))                  \
  X(get_error_name, cuGetErrorName, "cuGetErrorName", (CudaResult result, const char** name))      \
  X(get_error_string, cuGetErrorString, "cuGetErrorString",                                        \
    (CudaResult result, const char** text))                                                        \
  X(device_get_count, cuDeviceGetCount, "cuDeviceGetCount", (int* count))                          \
  X(device_get, cuDeviceGet, "cuDeviceGet", (CudaDevice * device, int ordinal))                    \
  X(device_get_name, cuDeviceGetName, "cuDeviceGetName",                                           \
    (char* name, int capacity, CudaDevice device))                                                 \
  X(device_get_attribute, cuDeviceGetAttribute, "cuDeviceGetAttribute",                            \
    (int* value, CudaDeviceAttribute attribute, CudaDevice device))                                \
  X(device_get_uuid, cuDeviceGetUuid, "cuDeviceGetUuid_v2", (CudaUuid * uuid, CudaDevice device))  \
  X(device_total_mem, cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t* bytes, CudaDevice device)) \
  X(primary_ctx_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                      \
    (CudaContext * context, CudaDevice device))                                                    \
  X(primary_ctx_release, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2",                \
    (CudaDevice device))                                                                           \
  X(ctx_set_current, cuCtxSetCurrent, "cuCtxSetCurrent", (CudaContext context))                    \
  X(ctx_get_current, cuCtxGetCurrent, "cuCtxGetCurrent", (CudaContext * context))                  \
  X(mem_get_info, cuMemGetInfo, "cuMemGetInfo_v2", (size_t* free, size_t* total))                  \
  X(mem_alloc, cuMemAlloc, "cuMemAlloc_v2", (CudaDevicePointer * pointer, size_t bytes))           \
  X(mem_free, cuMemFree, "cuMemFree_v2", (CudaDevicePointer pointer))                              \
  X(mem_host_alloc, cuMemHostAlloc, "cuMemHostAlloc",                                              \
    (void** memory, size_t bytes, unsigned int flags))                                             \
  X(mem_free_host, cuMemFreeHost, "cuMemFreeHost", (void* memory))                                 \
  X(mem_host_register, cuMemHostRegister, "cuMemHostRegister_v2",                                  \
    (void* memory, size_t bytes, unsigned int flags))                                              \
  X(mem_host_unregister, cuMemHostUnregister, "cuMemHostUnregister", (void* memory))               \
  X(memcpy_htod_async, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                  \
    (CudaDevicePointer to, const void* from, size_t bytes, CudaStream stream))                     \
  X(memcpy_dtoh_async, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                  \
    (void* to, CudaDevicePointer from, size_t bytes, CudaStream stream))                           \
  X(memcpy_dtod_async, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                  \
    (CudaDevicePointer to, CudaDevicePointer from, size_t bytes, CudaStream stream))               \
  X(memset_d8_async, cuMemsetD8Async, "cuMemsetD8Async",                                           \
    (CudaDevicePointer to, unsigned char value, size_t bytes, CudaStream stream))                  \
  X(stream_create, cuStreamCreate, "cuStreamCreate", (CudaStream * stream, unsigned int flags))    \
  X(stream_destroy, cuStreamDestroy, "cuStreamDestroy_v2", (CudaStream stream))                    \
  X(stream_query, cuStreamQuery, "cuStreamQuery", (CudaStream stream))                             \
  X(stream_synchronize, cuStreamSynchronize, "cuStreamSynchronize", (CudaStream stream))           \
  X(stream_wait_event, cuStreamWaitEvent, "cuStreamWaitEvent",                                     \
    (CudaStream stream, CudaEvent event, unsigned int flags))                                      \
  X(event_create, cuEventCreate, "cuEventCreate", (CudaEvent * event, unsigned int flags))         \
  X(event_destroy, cuEventDestroy, "cuEventDestroy_v2", (CudaEvent event))                         \
  X(event_record, cuEventRecord, "cuEventRecord", (CudaEvent event, CudaStream stream))            \
  X(event_query, cuEventQuery, "cuEventQuery", (CudaEvent event))                                  \
  X(event_synchronize, cuEventSynchronize, "cuEventSynchronize", (CudaEvent event))                \
  X(ipc_get_mem_handle, cuIpcGetMemHandle, "cuIpcGetMemHandle",                                    \
    (CudaIpcMemHandle * handle, CudaDevicePointer pointer))                                        \
  X(ipc_open_mem_handle, cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2",                              \
    (CudaDevicePointer * pointer, CudaIpcMemHandle handle, unsigned int flags))                    \
  X(ipc_close_mem_handle, cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (CudaDevicePointer pointer)) \
  X(ipc_get_event_handle, cuIpcGetEventHandle, "cuIpcGetEventHandle",                              \
    (CudaIpcEventHandle * handle, CudaEvent event))                                                \
  X(ipc_open_event_handle, cuIpcOpenEventHandle, "cuIpcOpenEventHandle",                           \
    (CudaEvent * event, CudaIpcEventHandle handle))                                                \
  X(module_load_data, cuModuleLoadData, "cuModuleLoadData",                                        \
    (CudaModule * module, const void* image))                                                      \
  X(module_unload, cuModuleUnload, "cuModuleUnload", (CudaModule module))                          \
  X(module_get_function, cuModuleGetFunction, "cuModuleGetFunction",                               \
    (CudaFunction * function, CudaModule module, const char* name))                                \
  X(launch_kernel, cuLaunchKernel, "cuLaunchKernel",                                               \
    (CudaFunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,  \
     CudaStream stream, void** parameters, void** extra))

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_DEVICE_CUDA_ABI_H_
