// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: tensors as lists of elements that each have a number of their own, and the index
// formulas by which trainers lay out the tensors of a Hugging Face checkpoint.
//
// Every formula is a loop over the trainer's indices that says which HF element is there. Written
// down from the trainers' documentation; includes nothing that a map is built of.
//
//   Elements w = {"w", {6, 8}, {0, 1, 2, ...}};
//   Elements q = Heads(w, 2);        // [8, 2, 3]: q[h, n, d] = w[n * 3 + d, h]

#ifndef WEIGHT_SYNC_REFIT_TESTING_ELEMENTS_H_
#define WEIGHT_SYNC_REFIT_TESTING_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weight_sync::refit::testing {

using Index = std::vector<int64_t>;

struct Elements {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<uint32_t> ids;    // row-major; empty where only names and shapes are wanted
  bool sent = true;             // false: a trainer's tensor of which no HF tensor is made
  bool passes_through = false;  // an HF tensor that no trainer holds

  int64_t size() const;
  uint32_t at(const Index& index) const;
};

// Of padding.
inline constexpr uint32_t kNoId = 0;

// The tensor of this shape that has at(index) at each index.
Elements FromFormula(std::vector<int64_t> shape, const std::function<uint32_t(const Index&)>& at);

Elements Same(const Elements& hf);                       // x[i...] = hf[i...]
Elements Transposed(const Elements& hf);                 // x[i, o] = hf[o, i]
Elements Heads(const Elements& hf, int64_t heads);       // x[h, n, d] = hf[n * D + d, h]
Elements OutHeads(const Elements& hf, int64_t heads);    // x[n, d, h] = hf[h, n * D + d]
Elements HeadsFirst(const Elements& hf, int64_t heads);  // x[n, h, d] = hf[n * D + d, h]
Elements SplitBias(const Elements& hf, int64_t heads);   // x[n, d] = hf[n * D + d]
Elements ConvKernel(const Elements& hf);                 // x[t, 0, c] = hf[c, 0, t]

// A new axis: parts[k][i, j, ...] is at [i, k, j, ...] for axis 1.
Elements StackedAt(int axis, const std::vector<Elements>& parts);

// Padding after the last index of an axis.
Elements PaddedAt(int axis, int64_t size, const Elements& part);

// How an id is stored: different values for different ids, and 0 for no id.
enum class Storage {
  kBF16,
  kF32,
  kBF16AsF32,     // the float32 that equals the kBF16 value
  kBF16AsMaster,  // a float32 that rounds to nearest even to the kBF16 value, and seldom equals it
};

// Densely. What has no id becomes bytes of this value.
std::vector<std::byte> Bytes(const Elements& tensor, Storage storage,
                             std::byte padding = std::byte{0});

}  // namespace weight_sync::refit::testing

#endif  // WEIGHT_SYNC_REFIT_TESTING_ELEMENTS_H_
