// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Writes tensors in the safetensors format, one file or a sharded set with its index.
//
// A file is byte for byte what the Python safetensors library's save_file() writes for the same
// tensors and metadata: tensors by descending DType, then by name (as bytes); the header is compact
// JSON padded with spaces to 8 bytes. One difference: the library writes several metadata entries
// in a random order, here they are sorted by key. Strided views are written as their logical
// values.
//
// Everything is checked before the first byte is written: names are unique, UTF-8 and not
// "__metadata__"; metadata is UTF-8; the header is within the format's limit. A file appears under
// its name complete and on stable storage (temporary file in the same directory, fsync, rename,
// fsync of the directory), or not at all; a failure leaves nothing behind. A process that is killed
// while it writes leaves a file named ".weight_sync-<pid>-<n>.tmp".
//
// Errors: InvalidArgument for what the caller handed in (it names the tensor or the path);
// FailedPrecondition for a directory that holds a checkpoint already; ResourceExhausted when space
// ran out; Internal when the device failed.
// Thread-safety: free functions; two writers of the same path are as two renames.
//
// Example:
//
//   const float values[2] = {1, 2};
//   const NamedTensor bias = {"bias", TensorView::Contiguous(
//       reinterpret_cast<const std::byte*>(values), DType::kF32, {2})};
//   absl::Status status = WriteSafetensors("model.safetensors", {bias}, {{"format", "pt"}});

#ifndef WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_WRITER_H_
#define WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "refit/checkpoint/named_tensor.h"

namespace weight_sync::refit {

// Replaces `path` when it exists; a mapping of the old file keeps the old bytes. Empty `metadata`
// writes no "__metadata__".
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Writes into the existing `directory`, which must hold no *.safetensors and no index yet: either
// "model.safetensors", when all tensors fit one shard, or "model-00001-of-0000N.safetensors" and so
// on with "model.safetensors.index.json", as Hugging Face's libraries name and format them. The
// index is the last file to appear.
//
// Tensors are distributed in the order given: a shard is closed before it would exceed
// `max_shard_bytes` of tensor bytes (over 0); a tensor larger than that has a shard of its own.
// `metadata` goes into every shard; the index's metadata is the "total_size" of all tensor bytes.
absl::Status WriteShardedSafetensors(const std::string& directory,
                                     absl::Span<const NamedTensor> tensors, int64_t max_shard_bytes,
                                     const std::map<std::string, std::string>& metadata = {});

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_CHECKPOINT_SAFETENSORS_WRITER_H_
