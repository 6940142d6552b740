// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint: the tensors of a model on disk, in the safetensors format: one file, or a set of
// shards with an index, as Hugging Face's libraries write them.
//
// Everything is mapped and checked when it is opened: each file as SafetensorsFile says, and that
// the index and the shards agree: every tensor is in exactly one shard, and that is the one to
// which the index maps it. Shards are plain names in the index's directory. The files must not
// become shorter while they are open. All views are valid while the Checkpoint (or what it was
// moved to) lives.
//
// Errors: InvalidArgument names the file and the tensor. Thread-safety: as a const object's.
//
// Example:
//
//   absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open("/models/Qwen3-0.6B");
//   if (!checkpoint.ok()) return checkpoint.status();
//   for (const NamedTensor& t : checkpoint->tensors()) std::cout << t.name << "\n";
//   const NamedTensor* norm = checkpoint->Find("model.norm.weight");   // nullptr: there is none

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_CHECKPOINT_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_file.h"

namespace weight_sync::refit {

class Checkpoint {
 public:
  // `path` is a safetensors file, an index ("*.index.json"), or a directory. Of a directory the
  // first that is there is opened: model.safetensors, model.safetensors.index.json, its only
  // *.safetensors file.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);

  // Tensors that lie elsewhere, whose bytes are borrowed. InvalidArgument for a name that is there
  // twice.
  static absl::StatusOr<Checkpoint> OfTensors(std::vector<NamedTensor> tensors);

  // Shards in the order of their names, and in each the tensors in the order of their bytes.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  // nullptr when no tensor has this name.
  const NamedTensor* Find(absl::string_view name) const;

  // Of all tensors, without headers.
  int64_t total_bytes() const { return total_bytes_; }

  // In the order of their names; one when the checkpoint is a single file, none OfTensors.
  const std::vector<SafetensorsFile>& shards() const { return shards_; }

 private:
  Checkpoint() = default;

  static absl::StatusOr<Checkpoint> OpenIndex(const std::string& path);
  static absl::StatusOr<Checkpoint> OpenFiles(const std::vector<std::string>& paths);

  std::vector<SafetensorsFile> shards_;
  std::vector<NamedTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> by_name_;  // into tensors_
  int64_t total_bytes_ = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_CHECKPOINT_H_
