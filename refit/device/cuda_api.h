// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver as a table of function pointers, filled at run time: a program starts on a
// machine without a driver, and learns there from a status that it has none. Nothing links libcuda
// or cudart. The members' signatures are in cuda_abi.h.
//
// A plain value: copies call the same driver, which stays loaded until the process ends.
// Thread-safe as the driver is: its current context is per thread.
//
//   absl::StatusOr<CudaApi> cuda = CudaApi::Load();
//   if (absl::IsUnavailable(cuda.status())) return UseTheHost();        // no driver here
//   if (!cuda.ok()) return cuda.status();                               // a driver that is no use
//   if (absl::Status s = cuda->Check(cuda->init(0), "cuInit"); absl::IsUnavailable(s)) {
//     return UseTheHost();                                              // a driver, and no GPU
//   }
//   CudaDevicePointer memory = 0;
//   WS_RETURN_IF_ERROR(cuda->Check(cuda->mem_alloc(&memory, bytes), "cuMemAlloc of the slots"));

#ifndef WEIGHT_SYNC_REFIT_DEVICE_CUDA_API_H_
#define WEIGHT_SYNC_REFIT_DEVICE_CUDA_API_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/device/cuda_abi.h"

namespace weight_sync::refit {

struct CudaLoadOptions {
  // The driver's library. Empty: what the environment variable WEIGHT_SYNC_LIBCUDA names, and if
  // that is not set (or empty) libcuda.so.1, then libcuda.so, where dlopen(3) looks for them. A
  // library that was named is the user's word: if it does not load, no other is tried.
  std::string library;
};

struct CudaApi {
  // Loads the driver's library and looks every function up; calls none of them. Unavailable when
  // there is no such library, NotFound when one lacks a function, as that of a driver older than
  // CUDA 11.4 does, or a library that is no driver. Both say what was looked for and where.
  static absl::StatusOr<CudaApi> Load(const CudaLoadOptions& options = {});

  // What a driver's answer means; `operation` says what was tried, and on what. The message has the
  // operation, the driver's name, number and text of the error, and the library.
  //
  //   OK                  success
  //   Unavailable         there is no GPU to use, which is no fault: no device, the stub library, a
  //                       busy or unready device, a driver that does not fit its kernel module
  //   ResourceExhausted   out of memory
  //   InvalidArgument     invalid value, invalid device
  //   FailedPrecondition  not initialised, shut down, no valid context; not ready (the queries'
  //                       answer for work that still runs: tell that apart before asking here)
  //   Unimplemented       this device or driver cannot do it: no code for it in a kernel's image,
  //                       newer PTX than the driver knows, no peer access, not supported
  //   DeadlineExceeded    a kernel ran into the driver's own time limit
  //   Internal            all others: this library used the driver wrongly, or a kernel failed
  absl::Status Check(CudaResult result, absl::string_view operation) const;

#define WS_CUDA_MEMBER_(member, cuda_name, symbol, parameters) \
  CudaResult(*member) parameters = nullptr;
  WS_CUDA_FUNCTIONS(WS_CUDA_MEMBER_)
#undef WS_CUDA_MEMBER_

  std::string library;  // the file that was loaded
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_DEVICE_CUDA_API_H_
