// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RefitInfo: what crosses in a refit, in order: {hf_name: (shape, dtype)}. Trainer and engine agree
// on one before the first byte; from it and a Geometry both derive the same buckets.
//
// Valid by construction: at least one tensor, no empty and no repeated name (a second copy of a
// name would overwrite the first without a word), sizes that fit int64_t. A tensor may have zero
// elements; it then has no bytes and still counts. Immutable, so thread-safe.
//
//   WS_ASSIGN_OR_RETURN(RefitInfo info, RefitInfo::Create({
//       {"model.embed_tokens.weight", {151936, 1024}, DType::kBF16},
//       {"model.norm.weight", {1024}, DType::kBF16},
//   }));
//   std::optional<int> norm = info.Find("model.norm.weight");   // 1
//   absl::Status same = CheckSameTensors(engine_info, info);    // names each difference

#ifndef WEIGHT_SYNC_REFIT_REFIT_INFO_H_
#define WEIGHT_SYNC_REFIT_REFIT_INFO_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"

namespace weight_sync::refit {

struct TensorSpec {
  std::string name;  // Hugging Face spelling, UTF-8
  Shape shape;
  DType dtype;
  int64_t bytes() const { return *ByteSize(dtype, shape); }
};

class RefitInfo {
 public:
  static absl::StatusOr<RefitInfo> Create(std::vector<TensorSpec> tensors);

  int size() const { return static_cast<int>(tensors_->size()); }
  const std::vector<TensorSpec>& tensors() const { return *tensors_; }
  const TensorSpec& operator[](int tensor) const {
    return (*tensors_)[static_cast<size_t>(tensor)];
  }
  std::optional<int> Find(absl::string_view name) const;
  int64_t total_bytes() const { return total_bytes_; }

 private:
  RefitInfo() = default;

  // One for all copies: by_name_ looks into its names.
  std::shared_ptr<const std::vector<TensorSpec>> tensors_;
  absl::flat_hash_map<absl::string_view, int> by_name_;
  int64_t total_bytes_ = 0;
};

// InvalidArgument unless both hold the same names with the same shapes and dtypes; the order may
// differ. The message counts, and names the first few of, what only the trainer has, what only the
// engine has, and what differs in shape or dtype.
absl::Status CheckSameTensors(const RefitInfo& engine, const RefitInfo& trainer);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_REFIT_INFO_H_
