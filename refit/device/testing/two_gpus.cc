// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The driver of a machine with two GPUs, as far as asking about them goes. The environment variable
// TWO_GPUS_INIT makes cuInit fail: with a result's number, or by "hang" or "abort".

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "refit/device/cuda_abi.h"

namespace weight_sync::refit {
namespace {

constexpr int kCount = 2;

const char* NameOf(CudaResult result) {
  switch (result) {
#define WS_NAME_(name, cuda_name, value) \
  case CudaResult::name:                 \
    return #cuda_name;
    WS_CUDA_RESULTS(WS_NAME_)
#undef WS_NAME_
  }
  return nullptr;
}

bool Known(CudaDevice device) { return device >= 0 && device < kCount; }

}  // namespace

extern "C" {

CudaResult cuInit(unsigned int) {
  const char* set = ::getenv("TWO_GPUS_INIT");
  const std::string answer = set != nullptr ? set : "0";
  if (answer == "hang") {
    for (;;) ::pause();
  }
  if (answer == "abort") ::abort();
  return static_cast<CudaResult>(std::stoi(answer));
}

CudaResult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CudaResult::kSuccess;
}

CudaResult cuGetErrorName(CudaResult result, const char** name) {
  *name = NameOf(result);
  return *name != nullptr ? CudaResult::kSuccess : CudaResult::kInvalidValue;
}

CudaResult cuGetErrorString(CudaResult result, const char** text) {
  *text = NameOf(result) != nullptr ? "what the driver says about it" : nullptr;
  return *text != nullptr ? CudaResult::kSuccess : CudaResult::kInvalidValue;
}

CudaResult cuDeviceGetCount(int* count) {
  *count = kCount;
  return CudaResult::kSuccess;
}

CudaResult cuDeviceGet(CudaDevice* device, int ordinal) {
  *device = ordinal;
  return Known(ordinal) ? CudaResult::kSuccess : CudaResult::kInvalidDevice;
}

CudaResult cuDeviceGetName(char* name, int capacity, CudaDevice device) {
  if (!Known(device)) return CudaResult::kInvalidDevice;
  ::snprintf(name, static_cast<size_t>(capacity), "Test GPU %c", 'A' + device);
  return CudaResult::kSuccess;
}

CudaResult cuDeviceGetAttribute(int* value, CudaDeviceAttribute attribute, CudaDevice device) {
  if (!Known(device)) return CudaResult::kInvalidDevice;
  switch (attribute) {
    case CudaDeviceAttribute::kComputeCapabilityMajor:
      *value = 9;
      return CudaResult::kSuccess;
    case CudaDeviceAttribute::kComputeCapabilityMinor:
      *value = 0;
      return CudaResult::kSuccess;
    case CudaDeviceAttribute::kMultiprocessorCount:
      *value = 132;
      return CudaResult::kSuccess;
  }
  return CudaResult::kInvalidValue;
}

CudaResult cuDeviceGetUuid_v2(CudaUuid* uuid, CudaDevice device) {
  if (!Known(device)) return CudaResult::kInvalidDevice;
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(0xf0 + i + device);
  return CudaResult::kSuccess;
}

CudaResult cuDeviceTotalMem_v2(size_t* bytes, CudaDevice device) {
  if (!Known(device)) return CudaResult::kInvalidDevice;
  *bytes = static_cast<size_t>(device + 1) << 36;
  return CudaResult::kSuccess;
}

}  // extern "C"

}  // namespace weight_sync::refit
