// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/refit_info.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/differences.h"

namespace weight_sync::refit {
absl::StatusOr<RefitInfo> RefitInfo::Create(std::vector<TensorSpec> tensors) {
  if (tensors.empty()) {
    return absl::InvalidArgumentError("a refit of no tensors would leave the engine stale");
  }
  RefitInfo info;
  info.tensors_ = std::make_shared<const std::vector<TensorSpec>>(std::move(tensors));
  info.by_name_.reserve(info.tensors_->size());
  for (size_t i = 0; i < info.tensors_->size(); ++i) {
    const TensorSpec& tensor = (*info.tensors_)[i];
    if (tensor.name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", i, " has no name"));
    }
    if (!info.by_name_.emplace(tensor.name, static_cast<int>(i)).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is there twice"));
    }
    const absl::StatusOr<int64_t> bytes = ByteSize(tensor.dtype, tensor.shape);
    if (!bytes.ok()) {
      return base::Prefixed(absl::StrCat("tensor '", tensor.name, "'"), bytes.status());
    }
    if (__builtin_add_overflow(info.total_bytes_, *bytes, &info.total_bytes_)) {
      return absl::InvalidArgumentError("the refit's total size does not fit 64 bits");
    }
  }
  return info;
}

std::optional<int> RefitInfo::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return std::nullopt;
  return it->second;
}

absl::Status CheckSameTensors(const RefitInfo& engine, const RefitInfo& trainer) {
  Differences only_trainer("only at the trainer"), only_engine("only at the engine"),
      shape("with another shape"), dtype("with another dtype");
  for (const TensorSpec& sent : trainer.tensors()) {
    const std::optional<int> found = engine.Find(sent.name);
    if (!found.has_value()) {
      only_trainer.Add(sent.name);
      continue;
    }
    const TensorSpec& expected = engine[*found];
    if (sent.shape != expected.shape) {
      shape.Add(absl::StrCat(sent.name, " (trainer ", sent.shape.ToString(), ", engine ",
                             expected.shape.ToString(), ")"));
    }
    if (sent.dtype != expected.dtype) {
      dtype.Add(absl::StrCat(sent.name, " (trainer ", SafetensorsName(sent.dtype), ", engine ",
                             SafetensorsName(expected.dtype), ")"));
    }
  }
  for (const TensorSpec& expected : engine.tensors()) {
    if (!trainer.Find(expected.name).has_value()) only_engine.Add(expected.name);
  }
  const std::string found = JoinDifferences({&only_trainer, &only_engine, &shape, &dtype});
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("trainer and engine hold different tensors: ", found));
}

}  // namespace weight_sync::refit
