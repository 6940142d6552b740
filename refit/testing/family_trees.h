// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a model's Hugging Face tensors, and the parameter trees of trainers that hold the same
// model, element by element. Maps are proved by comparison with these: loading and refitting by one
// map gives the same bytes back whether the map is right or wrong.
//
//   const std::vector<Elements> hf = HfTensors(TinyModel("Moe"));
//   const std::vector<Elements> tree = TunixTree(TinyModel("Moe"), hf);

#ifndef WEIGHT_SYNC_REFIT_TESTING_FAMILY_TREES_H_
#define WEIGHT_SYNC_REFIT_TESTING_FAMILY_TREES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "refit/testing/elements.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit::testing {

// Of the published form, without ids; and with ids that are unique but for a tied copy of the head.
std::vector<Elements> HfShapes(const ModelSpec& model);
std::vector<Elements> HfTensors(const ModelSpec& model);

// The form that transformers holds in memory: stacked experts, gate and up in one tensor. `hf` are
// HfShapes or HfTensors of the model.
std::vector<Elements> HfFused(const ModelSpec& model, const std::vector<Elements>& hf);

// Tensors by name; asking for one that is not there is fatal.
class ByName {
 public:
  explicit ByName(const std::vector<Elements>& tensors);
  const Elements& operator()(const std::string& name) const;
  bool has(const std::string& name) const { return by_name_.count(name) > 0; }

 private:
  std::map<std::string, const Elements*> by_name_;
};

// tunix, of dense models and Qwen3-MoE, and of Gemma 4. Paths are joined by dots.
std::vector<Elements> TunixTree(const ModelSpec& model, const std::vector<Elements>& hf);

struct MaxTextOptions {
  bool scanned = false;
  int scan_axis = 1;
  int64_t vocab = 0;  // rows of the embedding if more than the model's
};

// MaxText, of dense Qwen models, Qwen3-MoE and Qwen3-Next.
std::vector<Elements> MaxTextTree(const ModelSpec& model, const std::vector<Elements>& hf,
                                  const MaxTextOptions& options);

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_FAMILY_TREES_H_
