// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/checkpoint/pending_file.h"
#include "refit/checkpoint/safetensors_plan.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

absl::Status AppendTensor(PendingFile& file, const TensorView& tensor) {
  if (tensor.is_contiguous()) {
    return file.Append({tensor.data(), static_cast<size_t>(tensor.num_bytes())});
  }
  const int64_t element_bytes = StorageElementBytes(tensor.dtype());
  const int64_t elements = tensor.num_bytes() / element_bytes;
  const int64_t step = kChunkBytes / element_bytes;
  std::vector<std::byte> chunk(kChunkBytes);
  for (int64_t begin = 0; begin < elements; begin += step) {
    const int64_t end = std::min(begin + step, elements);
    CopyElements(tensor, begin, end, chunk.data());
    const size_t bytes = static_cast<size_t>((end - begin) * element_bytes);
    WS_RETURN_IF_ERROR(file.Append({chunk.data(), bytes}));
  }
  return absl::OkStatus();
}

// The complete file, not yet under its name.
absl::StatusOr<PendingFile> Prepare(const std::string& path, const FilePlan& plan) {
  WS_ASSIGN_OR_RETURN(PendingFile file, PendingFile::Create(path));
  WS_RETURN_IF_ERROR(file.AppendText(plan.head));
  for (const NamedTensor* t : plan.tensors) WS_RETURN_IF_ERROR(AppendTensor(file, t->tensor));
  WS_RETURN_IF_ERROR(file.Close());
  return file;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  WS_ASSIGN_OR_RETURN(const FilePlan plan, PlanFile(tensors, metadata));
  WS_ASSIGN_OR_RETURN(PendingFile file, Prepare(path, plan));
  return file.Publish();
}

absl::Status WriteShardedSafetensors(const std::string& directory,
                                     absl::Span<const NamedTensor> tensors, int64_t max_shard_bytes,
                                     const std::map<std::string, std::string>& metadata) {
  WS_ASSIGN_OR_RETURN(const CheckpointPlan plan,
                      PlanCheckpoint(tensors, max_shard_bytes, metadata));
  WS_RETURN_IF_ERROR(CheckHoldsNoCheckpoint(directory));
  std::vector<PendingFile> files;
  for (const FilePlan& one : plan.files) {
    WS_ASSIGN_OR_RETURN(PendingFile file, Prepare(absl::StrCat(directory, "/", one.name), one));
    files.push_back(std::move(file));
  }
  if (!plan.index.empty()) {
    WS_ASSIGN_OR_RETURN(
        PendingFile index,
        PendingFile::OfText(absl::StrCat(directory, "/", plan.index_name), plan.index));
    files.push_back(std::move(index));
  }
  return PublishAll(files);
}

}  // namespace weight_sync::refit
