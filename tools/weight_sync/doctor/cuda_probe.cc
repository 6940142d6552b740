// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/cuda_probe.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "refit/device/cuda_api.h"

namespace weight_sync::doctor {
namespace {

std::string UuidText(const refit::CudaUuid& uuid) {
  const std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

absl::StatusOr<Gpu> AskGpu(const refit::CudaApi& api, int ordinal) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  const auto check = [&](refit::CudaResult result, absl::string_view operation) {
    return api.Check(result, absl::StrCat(operation, " of GPU ", ordinal));
  };
  refit::CudaDevice device;
  WS_RETURN_IF_ERROR(check(api.device_get(&device, ordinal), "cuDeviceGet"));
  char name[256] = {};
  WS_RETURN_IF_ERROR(check(api.device_get_name(name, sizeof(name), device), "cuDeviceGetName"));
  gpu.name = name;
  refit::CudaUuid uuid;
  WS_RETURN_IF_ERROR(check(api.device_get_uuid(&uuid, device), "cuDeviceGetUuid"));
  gpu.uuid = UuidText(uuid);
  size_t bytes;
  WS_RETURN_IF_ERROR(check(api.device_total_mem(&bytes, device), "cuDeviceTotalMem"));
  gpu.memory_bytes = static_cast<int64_t>(bytes);
  int major, minor;
  using Attribute = refit::CudaDeviceAttribute;
  WS_RETURN_IF_ERROR(
      check(api.device_get_attribute(&major, Attribute::kComputeCapabilityMajor, device),
            "cuDeviceGetAttribute"));
  WS_RETURN_IF_ERROR(
      check(api.device_get_attribute(&minor, Attribute::kComputeCapabilityMinor, device),
            "cuDeviceGetAttribute"));
  gpu.compute_capability = absl::StrCat(major, ".", minor);
  return gpu;
}

absl::Status AskDriver(Cuda& out) {
  WS_ASSIGN_OR_RETURN(const refit::CudaApi api, refit::CudaApi::Load());
  out.library = api.library;
  int version;
  WS_RETURN_IF_ERROR(api.Check(api.driver_get_version(&version), "cuDriverGetVersion"));
  out.driver_version = absl::StrCat(version / 1000, ".", version % 1000 / 10);
  WS_RETURN_IF_ERROR(api.Check(api.init(0), "cuInit"));
  int count;
  WS_RETURN_IF_ERROR(api.Check(api.device_get_count(&count), "cuDeviceGetCount"));
  if (count == 0) return absl::UnavailableError("the driver shows no GPU");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    WS_ASSIGN_OR_RETURN(Gpu gpu, AskGpu(api, ordinal));
    out.gpus.push_back(gpu);
  }
  return absl::OkStatus();
}

}  // namespace

Cuda ProbeCuda() {
  Cuda out;
  if (const absl::Status status = AskDriver(out); !status.ok()) {
    out.error = std::string(status.message());
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (!out.library.empty() && visible != nullptr) {
      absl::StrAppend(&out.error, " (CUDA_VISIBLE_DEVICES is '", visible, "')");
    }
  }
  return out;
}

}  // namespace weight_sync::doctor
