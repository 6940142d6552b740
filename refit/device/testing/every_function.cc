// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Exports every function of CudaApi's table, each answering "not supported", for a library that
// defines some of them better: these are weak.

#include "refit/device/cuda_abi.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace weight_sync::refit {

#define WS_DEFINE_(member, cuda_name, symbol, parameters)                           \
  extern "C" __attribute__((weak)) CudaResult Weak_##member parameters asm(symbol); \
  extern "C" CudaResult Weak_##member parameters { return CudaResult::kNotSupported; }
WS_CUDA_FUNCTIONS(WS_DEFINE_)
#undef WS_DEFINE_

}  // namespace weight_sync::refit
