// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/pending_checkpoint.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_plan.h"

namespace weight_sync::refit {

absl::StatusOr<PendingCheckpoint> PendingCheckpoint::Create(
    const std::string& directory, absl::Span<const TensorSpec> tensors, int64_t max_shard_bytes,
    const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> planned;  // without data
  planned.reserve(tensors.size());
  for (const TensorSpec& tensor : tensors) {
    planned.push_back({tensor.name, TensorView::Contiguous(nullptr, tensor.dtype, tensor.shape)});
  }
  WS_ASSIGN_OR_RETURN(const CheckpointPlan plan,
                      PlanCheckpoint(planned, max_shard_bytes, metadata));
  WS_RETURN_IF_ERROR(CheckHoldsNoCheckpoint(directory));

  std::vector<PendingFile> files;
  std::vector<MutableTensorView> views(tensors.size());
  for (const FilePlan& one : plan.files) {
    WS_ASSIGN_OR_RETURN(PendingFile file,
                        PendingFile::Create(absl::StrCat(directory, "/", one.name)));
    WS_ASSIGN_OR_RETURN(const absl::Span<std::byte> bytes,
                        file.Map(one.head.size() + static_cast<size_t>(one.tensor_bytes)));
    std::memcpy(bytes.data(), one.head.data(), one.head.size());
    std::byte* at = bytes.data() + one.head.size();
    for (const NamedTensor* tensor : one.tensors) {
      const TensorView& shape = tensor->tensor;
      views[static_cast<size_t>(tensor - planned.data())] =
          MutableTensorView::Contiguous(at, shape.dtype(), shape.shape());
      at += shape.num_bytes();
    }
    files.push_back(std::move(file));
  }
  const int num_files = static_cast<int>(files.size());
  if (!plan.index.empty()) {
    WS_ASSIGN_OR_RETURN(
        PendingFile index,
        PendingFile::OfText(absl::StrCat(directory, "/", plan.index_name), plan.index));
    files.push_back(std::move(index));
  }
  return PendingCheckpoint(std::move(files), std::move(views), num_files);
}

absl::Status PendingCheckpoint::Publish() {
  tensors_.clear();
  for (int i = 0; i < num_files_; ++i) {
    WS_RETURN_IF_ERROR(files_[static_cast<size_t>(i)].Close());
  }
  return PublishAll(files_);
}

}  // namespace weight_sync::refit
