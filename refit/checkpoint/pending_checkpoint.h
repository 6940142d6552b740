// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PendingCheckpoint: a checkpoint on disk whose tensors are made in place, in any order and bit by
// bit, however large they are: its files are mapped, so no memory of the process holds them. The
// files appear under their names complete and on stable storage, or not at all.
//
// Files are the same, byte for byte, as WriteShardedSafetensors() writes for these tensors. Their
// space is allocated when they are created: where the disk is too full, nothing was written yet.
// What was not published is removed; a process that is killed leaves files that are named
// ".weight_sync-<pid>-<n>.tmp".
//
// Errors: as safetensors_writer.h says. Thread-safety: tensors may be written by several threads.
//
// Example:
//
//   WS_ASSIGN_OR_RETURN(auto pending, PendingCheckpoint::Create(dir, info.tensors(), 5'000'000'000));
//   for (const MutableTensorView& tensor : pending.tensors()) Fill(tensor);
//   return pending.Publish();

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_CHECKPOINT_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/checkpoint/pending_file.h"
#include "refit/refit_info.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::refit {

class PendingCheckpoint {
 public:
  // In the existing `directory`, which must hold no checkpoint; shards and metadata as
  // WriteShardedSafetensors() has them.
  static absl::StatusOr<PendingCheckpoint> Create(
      const std::string& directory, absl::Span<const TensorSpec> tensors, int64_t max_shard_bytes,
      const std::map<std::string, std::string>& metadata = {});

  // In the order in which they were given; contiguous, all zeros at first.
  const std::vector<MutableTensorView>& tensors() const { return tensors_; }

  // Shards, without the index.
  int num_files() const { return num_files_; }

  // Once: no tensor is there to be written afterwards.
  absl::Status Publish();

 private:
  PendingCheckpoint(std::vector<PendingFile> files, std::vector<MutableTensorView> tensors,
                    int num_files)
      : files_(std::move(files)), tensors_(std::move(tensors)), num_files_(num_files) {}

  std::vector<PendingFile> files_;  // the index last, if there is one
  std::vector<MutableTensorView> tensors_;
  int num_files_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_PENDING_CHECKPOINT_H_
