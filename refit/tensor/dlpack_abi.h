// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DLPack's C ABI, in which torch, jax, numpy and others hand each other tensors, declared here so that
// nothing needs its header: dlpack.h of https://github.com/dmlc/dlpack, version 1.3. Both structs
// that are in use: the versioned one since 1.0, and the older one without a version.
// dlpack_abi_test compares all of it with dlpack.h's sizes, offsets and values, and
// dlpack_header_peer_test with the very header that torch ships.
//
// What is declared here has the same layout as what dlpack.h declares under the same name.

#ifndef WEIGHT_SYNC_REFIT_TENSOR_DLPACK_ABI_H_
#define WEIGHT_SYNC_REFIT_TENSOR_DLPACK_ABI_H_

#include <cstdint>

namespace weight_sync::refit::dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 3;

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

// X(name here, name in dlpack.h, value)
#define WS_DLPACK_DEVICE_TYPES(X)     \
  X(kCpu, kDLCPU, 1)                  \
  X(kCuda, kDLCUDA, 2)                \
  X(kCudaHost, kDLCUDAHost, 3)        \
  X(kOpenCl, kDLOpenCL, 4)            \
  X(kVulkan, kDLVulkan, 7)            \
  X(kMetal, kDLMetal, 8)              \
  X(kVpi, kDLVPI, 9)                  \
  X(kRocm, kDLROCM, 10)               \
  X(kRocmHost, kDLROCMHost, 11)       \
  X(kExtDev, kDLExtDev, 12)           \
  X(kCudaManaged, kDLCUDAManaged, 13) \
  X(kOneApi, kDLOneAPI, 14)           \
  X(kWebGpu, kDLWebGPU, 15)           \
  X(kHexagon, kDLHexagon, 16)         \
  X(kMaia, kDLMAIA, 17)               \
  X(kTrn, kDLTrn, 18)

enum class DLDeviceType : int32_t {
#define WS_DLPACK_ENUMERATOR_(name, dlpack_name, value) name = value,
  WS_DLPACK_DEVICE_TYPES(WS_DLPACK_ENUMERATOR_)
#undef WS_DLPACK_ENUMERATOR_
};

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

// X(name here, name in dlpack.h, value)
#define WS_DLPACK_TYPE_CODES(X)                   \
  X(kInt, kDLInt, 0)                              \
  X(kUInt, kDLUInt, 1)                            \
  X(kFloat, kDLFloat, 2)                          \
  X(kOpaqueHandle, kDLOpaqueHandle, 3)            \
  X(kBfloat, kDLBfloat, 4)                        \
  X(kComplex, kDLComplex, 5)                      \
  X(kBool, kDLBool, 6)                            \
  X(kFloat8E3M4, kDLFloat8_e3m4, 7)               \
  X(kFloat8E4M3, kDLFloat8_e4m3, 8)               \
  X(kFloat8E4M3B11Fnuz, kDLFloat8_e4m3b11fnuz, 9) \
  X(kFloat8E4M3Fn, kDLFloat8_e4m3fn, 10)          \
  X(kFloat8E4M3Fnuz, kDLFloat8_e4m3fnuz, 11)      \
  X(kFloat8E5M2, kDLFloat8_e5m2, 12)              \
  X(kFloat8E5M2Fnuz, kDLFloat8_e5m2fnuz, 13)      \
  X(kFloat8E8M0Fnu, kDLFloat8_e8m0fnu, 14)        \
  X(kFloat6E2M3Fn, kDLFloat6_e2m3fn, 15)          \
  X(kFloat6E3M2Fn, kDLFloat6_e3m2fn, 16)          \
  X(kFloat4E2M1Fn, kDLFloat4_e2m1fn, 17)

enum class DLDataTypeCode : uint8_t {
#define WS_DLPACK_ENUMERATOR_(name, dlpack_name, value) name = value,
  WS_DLPACK_TYPE_CODES(WS_DLPACK_ENUMERATOR_)
#undef WS_DLPACK_ENUMERATOR_
};

struct DLDataType {
  DLDataTypeCode code;
  uint8_t bits;
  uint16_t lanes;  // of a vector type; 1: a scalar
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;        // may be null when ndim is 0
  int64_t* strides;      // in elements; null: row-major (before version 1.2)
  uint64_t byte_offset;  // from data to the first element
};

// What its consumer does with it: read dl_tensor, and call the deleter (null: nothing to do) once.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

inline constexpr uint64_t kReadOnly = uint64_t{1} << 0;
inline constexpr uint64_t kIsCopied = uint64_t{1} << 1;
inline constexpr uint64_t kIsSubbyteTypePadded = uint64_t{1} << 2;

// Of another major version only what is before dl_tensor may be looked at, to call the deleter.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // namespace weight_sync::refit::dlpack

#endif  // WEIGHT_SYNC_REFIT_TENSOR_DLPACK_ABI_H_
