// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/demo/demo_checkpoint.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "fakes/qwen3_model.h"
#include "refit/checkpoint/safetensors_writer.h"

namespace weight_sync::demo {
namespace {

constexpr int64_t kShardBytes = 128'000'000;
constexpr int64_t kHeadersAtMost = 1 << 20;

absl::Status CheckFreeSpace(const std::string& directory, int64_t needed) {
  struct statvfs fs;
  if (::statvfs(directory.c_str(), &fs) != 0) return absl::ErrnoToStatus(errno, directory);
  const int64_t free = static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
  if (free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the demo's checkpoint takes ", needed, " bytes and ", directory, " has ", free,
                   " bytes free; set TMPDIR, or give a checkpoint of yours with --checkpoint"));
}

}  // namespace

absl::Status MakeCheckpoint(const std::string& directory, uint64_t seed) {
  fakes::Qwen3Config config;
  config.layers = 9;
  config.vocabulary = 8192;
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info,
                      refit::RefitInfo::Create(fakes::Qwen3Tensors(config)));
  WS_RETURN_IF_ERROR(CheckFreeSpace(directory, info.total_bytes() + kHeadersAtMost));
  WS_ASSIGN_OR_RETURN(fakes::Parameters parameters, fakes::Parameters::Create(info));
  parameters.FillSeeded(seed);
  std::vector<refit::NamedTensor> tensors;
  for (int t = 0; t < info.size(); ++t) tensors.push_back({info[t].name, parameters.view(t)});
  return refit::WriteShardedSafetensors(directory, tensors, kShardBytes, {{"format", "pt"}});
}

absl::StatusOr<refit::RefitInfo> InfoOf(const refit::Checkpoint& checkpoint) {
  std::vector<refit::TensorSpec> tensors;
  for (const refit::NamedTensor& t : checkpoint.tensors()) {
    tensors.push_back({t.name, t.tensor.shape(), t.tensor.dtype()});
  }
  return refit::RefitInfo::Create(std::move(tensors));
}

absl::StatusOr<fakes::Parameters> LoadParameters(const refit::Checkpoint& checkpoint) {
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo info, InfoOf(checkpoint));
  WS_ASSIGN_OR_RETURN(fakes::Parameters parameters, fakes::Parameters::Create(info));
  for (int t = 0; t < info.size(); ++t) {
    const refit::TensorView& from = checkpoint.tensors()[static_cast<size_t>(t)].tensor;
    if (from.num_bytes() == 0) continue;
    std::memcpy(parameters.view(t).data(), from.data(), static_cast<size_t>(from.num_bytes()));
  }
  return parameters;
}

}  // namespace weight_sync::demo
