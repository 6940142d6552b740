// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/device/cuda_api.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

absl::StatusCode CodeOf(CudaResult result) {
  switch (result) {
    case CudaResult::kSuccess:
      return absl::StatusCode::kOk;
    case CudaResult::kNoDevice:
    case CudaResult::kStubLibrary:
    case CudaResult::kDeviceUnavailable:
    case CudaResult::kOperatingSystem:
    case CudaResult::kSystemNotReady:
    case CudaResult::kSystemDriverMismatch:
    case CudaResult::kCompatNotSupported:
      return absl::StatusCode::kUnavailable;
    case CudaResult::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case CudaResult::kInvalidValue:
    case CudaResult::kInvalidDevice:
      return absl::StatusCode::kInvalidArgument;
    case CudaResult::kNotInitialized:
    case CudaResult::kDeinitialized:
    case CudaResult::kInvalidContext:
    case CudaResult::kContextIsDestroyed:
    case CudaResult::kNotReady:
      return absl::StatusCode::kFailedPrecondition;
    case CudaResult::kNoBinaryForGpu:
    case CudaResult::kUnsupportedPtxVersion:
    case CudaResult::kPeerAccessUnsupported:
    case CudaResult::kNotSupported:
      return absl::StatusCode::kUnimplemented;
    case CudaResult::kLaunchTimeout:
      return absl::StatusCode::kDeadlineExceeded;
  }
  return absl::StatusCode::kInternal;  // a result that is not in the list
}

// Who named the library, for errors, and what can be done.
absl::Status Explained(const base::LibraryNames& names, const absl::Status& status) {
  if (!names.variable.empty()) {
    return base::Prefixed(absl::StrCat("CUDA driver named by ", names.variable), status);
  }
  if (names.chosen) return base::Prefixed("CUDA driver named by CudaLoadOptions::library", status);
  return absl::Status(status.code(),
                      absl::StrCat("CUDA driver: ", status.message(),
                                   " (install the NVIDIA driver, 470 or newer, or name its "
                                   "libcuda.so.1 by WEIGHT_SYNC_LIBCUDA)"));
}

}  // namespace

absl::StatusOr<CudaApi> CudaApi::Load(const CudaLoadOptions& options) {
  const base::LibraryNames names =
      base::ChooseLibrary(options.library, {"WEIGHT_SYNC_LIBCUDA"}, {"libcuda.so.1", "libcuda.so"});
  absl::StatusOr<base::DynamicLibrary> library = base::DynamicLibrary::Open(names.names);
  if (!library.ok()) return Explained(names, library.status());
  CudaApi api;
  api.library = library->path();
#define WS_CUDA_LOOK_UP_(member, cuda_name, symbol, parameters)     \
  {                                                                 \
    auto function = library->Symbol<CudaResult parameters>(symbol); \
    if (!function.ok()) return Explained(names, function.status()); \
    api.member = *function;                                         \
  }
  WS_CUDA_FUNCTIONS(WS_CUDA_LOOK_UP_)
#undef WS_CUDA_LOOK_UP_
  return api;
}

absl::Status CudaApi::Check(CudaResult result, absl::string_view operation) const {
  if (result == CudaResult::kSuccess) return absl::OkStatus();
  // The driver answers null for a number that it does not know.
  const char *name = nullptr, *text = nullptr;
  get_error_name(result, &name);
  get_error_string(result, &text);
  return absl::Status(CodeOf(result),
                      absl::StrCat(operation, ": ", name != nullptr ? name : "unknown CUDA error",
                                   " (", static_cast<uint32_t>(result),
                                   "): ", text != nullptr ? text : "no text", " [", library, "]"));
}

}  // namespace weight_sync::refit
