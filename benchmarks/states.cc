// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/states.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::benchmarks {
namespace {

refit::RefitInfo Make(std::vector<refit::TensorSpec> tensors) {
  absl::StatusOr<refit::RefitInfo> info = refit::RefitInfo::Create(std::move(tensors));
  CHECK_OK(info.status());
  return *std::move(info);
}

}  // namespace

refit::RefitInfo Qwen3Dense(int layers, int64_t vocabulary) {
  constexpr int64_t kHidden = 1024, kIntermediate = 3072, kQuery = 2048, kKeyValue = 1024;
  constexpr int64_t kHead = 128;
  std::vector<refit::TensorSpec> tensors;
  const auto add = [&tensors](std::string name, refit::Shape shape) {
    tensors.push_back({std::move(name), shape, refit::DType::kBF16});
  };
  add("model.embed_tokens.weight", {vocabulary, kHidden});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    add(layer + "input_layernorm.weight", {kHidden});
    add(layer + "self_attn.q_proj.weight", {kQuery, kHidden});
    add(layer + "self_attn.k_proj.weight", {kKeyValue, kHidden});
    add(layer + "self_attn.v_proj.weight", {kKeyValue, kHidden});
    add(layer + "self_attn.q_norm.weight", {kHead});
    add(layer + "self_attn.k_norm.weight", {kHead});
    add(layer + "self_attn.o_proj.weight", {kHidden, kQuery});
    add(layer + "post_attention_layernorm.weight", {kHidden});
    add(layer + "mlp.gate_proj.weight", {kIntermediate, kHidden});
    add(layer + "mlp.up_proj.weight", {kIntermediate, kHidden});
    add(layer + "mlp.down_proj.weight", {kHidden, kIntermediate});
  }
  add("model.norm.weight", {kHidden});
  return Make(std::move(tensors));
}

refit::RefitInfo SmallExperts(int layers, int experts) {
  constexpr int64_t kHidden = 768, kIntermediate = 32;
  std::vector<refit::TensorSpec> tensors;
  for (int i = 0; i < layers; ++i) {
    for (int e = 0; e < experts; ++e) {
      const std::string expert = absl::StrCat("model.layers.", i, ".mlp.experts.", e, ".");
      constexpr refit::DType kType = refit::DType::kBF16;
      tensors.push_back({expert + "gate_proj.weight", {kIntermediate, kHidden}, kType});
      tensors.push_back({expert + "up_proj.weight", {kIntermediate, kHidden}, kType});
      tensors.push_back({expert + "down_proj.weight", {kHidden, kIntermediate}, kType});
    }
  }
  return Make(std::move(tensors));
}

refit::RefitInfo Vectors(int count, int64_t bytes) {
  CHECK_EQ(bytes % 2, 0);
  std::vector<refit::TensorSpec> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back({absl::StrCat("vectors.", i), {bytes / 2}, refit::DType::kBF16});
  }
  return Make(std::move(tensors));
}

}  // namespace weight_sync::benchmarks
