// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares cuda_abi.h with the real cuda.h: the only place outside of .cu files that may include an
// NVIDIA header. A difference in a type, a constant or a signature does not compile; one in an
// exported name fails.

#include "refit/device/cuda_abi.h"

#include <cuda.h>

#include <type_traits>

#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

// Whether a caller may pass an A where the driver takes a B. Types of this project's own match
// their counterpart only, and handles must be the very same type.
template <typename A, typename B>
struct Same : std::is_same<A, B> {};

template <typename A, typename B>
struct Same<A*, B*>
    : std::bool_constant<std::is_const_v<A> == std::is_const_v<B> &&
                         Same<std::remove_const_t<A>, std::remove_const_t<B>>::value> {};

template <typename A, typename B>
inline constexpr bool kSameEnum =
    std::is_same_v<std::underlying_type_t<A>, std::underlying_type_t<B>>;
template <>
struct Same<CudaResult, CUresult> : std::bool_constant<kSameEnum<CudaResult, CUresult>> {};
template <>
struct Same<CudaDeviceAttribute, CUdevice_attribute>
    : std::bool_constant<kSameEnum<CudaDeviceAttribute, CUdevice_attribute>> {};

// Trivial classes of char alone are passed alike when their sizes are equal.
template <typename A, typename B>
inline constexpr bool kSameClass = sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
                                   std::is_trivial_v<A> == std::is_trivial_v<B> &&
                                   std::is_standard_layout_v<A> == std::is_standard_layout_v<B>;
template <>
struct Same<CudaUuid, CUuuid> : std::bool_constant<kSameClass<CudaUuid, CUuuid>> {};
template <>
struct Same<CudaIpcMemHandle, CUipcMemHandle>
    : std::bool_constant<kSameClass<CudaIpcMemHandle, CUipcMemHandle>> {};
template <>
struct Same<CudaIpcEventHandle, CUipcEventHandle>
    : std::bool_constant<kSameClass<CudaIpcEventHandle, CUipcEventHandle>> {};

// Functions: result and parameters one by one.
template <typename A, typename B>
struct SameFunction : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
struct SameFunction<A(As...), B(Bs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(As) == sizeof...(Bs)) {
      return Same<A, B>::value && (Same<As, Bs>::value && ...);
    } else {
      return false;
    }
  }();
};

// The comparison itself can tell.
static_assert(SameFunction<int(const char*), int(const char*)>::value);
static_assert(!SameFunction<int(const char*), int(char*)>::value);
static_assert(!SameFunction<int(int), int(unsigned)>::value);
static_assert(!SameFunction<int(int), int(int, int)>::value);
static_assert(!SameFunction<int(CudaUuid), int(CUipcMemHandle)>::value);
static_assert(!SameFunction<CudaDeviceAttribute(), CUresult()>::value);

#define WS_SAME_TYPE(ours, theirs) \
  static_assert(Same<ours, theirs>::value, #ours " differs from " #theirs)
WS_SAME_TYPE(CudaDevice, CUdevice);
WS_SAME_TYPE(CudaDevicePointer, CUdeviceptr);
WS_SAME_TYPE(CudaContext, CUcontext);
WS_SAME_TYPE(CudaEvent, CUevent);
WS_SAME_TYPE(CudaFunction, CUfunction);
WS_SAME_TYPE(CudaModule, CUmodule);
WS_SAME_TYPE(CudaStream, CUstream);
WS_SAME_TYPE(CudaResult, CUresult);
WS_SAME_TYPE(CudaDeviceAttribute, CUdevice_attribute);
WS_SAME_TYPE(CudaUuid, CUuuid);
WS_SAME_TYPE(CudaIpcMemHandle, CUipcMemHandle);
WS_SAME_TYPE(CudaIpcEventHandle, CUipcEventHandle);

#define WS_SAME_RESULT(name, cuda_name, number)                                                    \
  static_assert(static_cast<CUresult>(CudaResult::name) == (cuda_name) && (cuda_name) == (number), \
                #cuda_name " differs");
WS_CUDA_RESULTS(WS_SAME_RESULT)

#define WS_SAME_ATTRIBUTE(name, cuda_name, number)                                           \
  static_assert(static_cast<CUdevice_attribute>(CudaDeviceAttribute::name) == (cuda_name) && \
                    (cuda_name) == (number),                                                 \
                #cuda_name " differs");
WS_CUDA_DEVICE_ATTRIBUTES(WS_SAME_ATTRIBUTE)

#define WS_SAME_FLAG(name, cuda_name, number) \
  static_assert((name) == static_cast<unsigned int>(cuda_name), #cuda_name " differs");
WS_CUDA_FLAGS(WS_SAME_FLAG)

#define WS_SAME_FUNCTION(member, cuda_name, symbol, parameters)                    \
  static_assert(SameFunction<CudaResult parameters, decltype(::cuda_name)>::value, \
                "the signature of " symbol " differs");
WS_CUDA_FUNCTIONS(WS_SAME_FUNCTION)

#define WS_TEXT_OF(text) #text
#define WS_TEXT(text) WS_TEXT_OF(text)

TEST(CudaAbiTest, EveryExportedNameIsTheOneThatTheHeaderMapsTo) {
#define WS_SAME_NAME(member, cuda_name, symbol, parameters) \
  EXPECT_STREQ(WS_TEXT(cuda_name), symbol);
  WS_CUDA_FUNCTIONS(WS_SAME_NAME)
#undef WS_SAME_NAME
}

}  // namespace
}  // namespace weight_sync::refit
