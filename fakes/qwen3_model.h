// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a dense Qwen3 model, for tests, benchmarks and the demo that want a real model's
// names and shapes in any size. Tied embeddings: there is no lm_head.weight. All BF16, in the order
// of transformers' Qwen3ForCausalLM.state_dict()
// (https://github.com/huggingface/transformers, models/qwen3/modeling_qwen3.py). Thread-safe.
//
//   Qwen3Config config;   // Qwen3-0.6B
//   config.layers = 9;
//   WS_ASSIGN_OR_RETURN(refit::RefitInfo info, refit::RefitInfo::Create(Qwen3Tensors(config)));

#ifndef WEIGHT_SYNC_FAKES_QWEN3_MODEL_H_
#define WEIGHT_SYNC_FAKES_QWEN3_MODEL_H_

#include <cstdint>
#include <vector>

#include "refit/refit_info.h"

namespace weight_sync::fakes {

// Named as in config.json, without "num_" and "_size". The defaults are Qwen3-0.6B's.
struct Qwen3Config {
  int64_t layers = 28;
  int64_t vocabulary = 151936;
  int64_t hidden = 1024;
  int64_t intermediate = 3072;
  int64_t attention_heads = 16;
  int64_t key_value_heads = 8;
  int64_t head_dim = 128;  // not hidden / attention_heads
};

std::vector<refit::TensorSpec> Qwen3Tensors(const Qwen3Config& config);

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_QWEN3_MODEL_H_
