// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/testing/family_trees.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "refit/testing/elements.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit::testing {
namespace {

int64_t Total(const std::vector<Elements>& tensors) {
  int64_t n = 0;
  for (const Elements& tensor : tensors) n += tensor.size();
  return n;
}

std::set<uint32_t> Ids(const std::vector<Elements>& tensors) {
  std::set<uint32_t> ids;
  for (const Elements& tensor : tensors) ids.insert(tensor.ids.begin(), tensor.ids.end());
  ids.erase(kNoId);
  return ids;
}

TEST(FamilyTreesTest, TensorsAreAsManyAndAsLargeAsPublished) {
  std::vector<ModelSpec> models = TinyModels();
  for (const ModelSpec& m : PublishedModels()) models.push_back(m);
  for (const ModelSpec& m : models) {
    const std::vector<Elements> hf = HfShapes(m);
    EXPECT_EQ(static_cast<int64_t>(hf.size()), m.tensors) << m.name;
    EXPECT_EQ(Total(hf), m.elements) << m.name;
    std::set<std::string> names;
    for (const Elements& tensor : hf) names.insert(tensor.name);
    EXPECT_EQ(names.size(), hf.size()) << m.name;
  }
}

TEST(FamilyTreesTest, TreesHoldEveryElementOfTheTextModelOnce) {
  for (const ModelSpec& m : TinyModels()) {
    const std::vector<Elements> hf = HfTensors(m);
    std::vector<Elements> held;
    for (const Elements& tensor : hf) {
      if (!tensor.passes_through && !(m.tied && tensor.name == "lm_head.weight")) {
        held.push_back(tensor);
      }
    }
    EXPECT_EQ(static_cast<int64_t>(Ids(held).size()), Total(held)) << m.name;

    std::vector<std::vector<Elements>> trees;
    if (m.o_bias) continue;  // which no trainer holds
    if (!m.is_next()) trees.push_back(TunixTree(m, hf));
    if (!m.is_gemma() && m.model_type != "llama") {
      trees.push_back(MaxTextTree(m, hf, {}));
      if (m.dense_layers.empty()) trees.push_back(MaxTextTree(m, hf, {/*scanned=*/true}));
    }
    for (const std::vector<Elements>& tree : trees) {
      EXPECT_EQ(Ids(tree), Ids(held)) << m.name;
      int64_t sent = 0;
      for (const Elements& tensor : tree) sent += tensor.sent ? tensor.size() : 0;
      EXPECT_EQ(sent, Total(held)) << m.name;
    }
    EXPECT_EQ(Ids(HfFused(m, hf)), Ids(hf)) << m.name;
    EXPECT_EQ(Total(HfFused(m, hf)), Total(hf)) << m.name;
  }
}

TEST(FamilyTreesTest, PaddingHasNoIds) {
  const ModelSpec m = TinyModel("Qwen3Untied");
  MaxTextOptions options;
  options.vocab = m.vocab + 5;
  const std::vector<Elements> tree = MaxTextTree(m, HfTensors(m), options);
  const ByName find(tree);
  EXPECT_EQ(find("params-token_embedder-embedding").shape, (std::vector<int64_t>{16, 8}));
  EXPECT_EQ(find("params-token_embedder-embedding").at({11, 0}), kNoId);
  EXPECT_NE(find("params-token_embedder-embedding").at({10, 7}), kNoId);
  EXPECT_EQ(find("params-decoder-logits_dense-kernel").shape, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(find("params-decoder-logits_dense-kernel").at({0, 11}), kNoId);
}

TEST(FamilyTreesTest, FormulasAtSingleElements) {
  Elements w =
      FromFormula({6, 8}, [](const Index& x) { return static_cast<uint32_t>(x[0] * 8 + x[1]); });
  EXPECT_EQ(Transposed(w).at({7, 2}), w.at({2, 7}));
  EXPECT_EQ(Heads(w, 2).shape, (std::vector<int64_t>{8, 2, 3}));
  EXPECT_EQ(Heads(w, 2).at({5, 1, 2}), w.at({5, 5}));
  EXPECT_EQ(HeadsFirst(w, 2).at({1, 5, 2}), w.at({5, 5}));
  EXPECT_EQ(OutHeads(w, 2).shape, (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(OutHeads(w, 2).at({1, 3, 4}), w.at({4, 7}));
  EXPECT_EQ(StackedAt(1, {w, Same(w)}).shape, (std::vector<int64_t>{6, 2, 8}));
}

TEST(FamilyTreesTest, StoredValuesAreUniqueAndMastersRound) {
  Elements all;
  for (uint32_t id = 1; id < 0x2000; ++id) all.ids.push_back(id);
  all.shape = {static_cast<int64_t>(all.ids.size())};
  const std::vector<std::byte> bf16 = Bytes(all, Storage::kBF16);
  const std::vector<std::byte> wide = Bytes(all, Storage::kBF16AsF32);
  const std::vector<std::byte> masters = Bytes(all, Storage::kBF16AsMaster);
  std::set<uint16_t> seen;
  int exact = 0;
  for (size_t i = 0; i < all.ids.size(); ++i) {
    uint16_t bits, low, high;
    float value, master, below, above;
    std::memcpy(&bits, &bf16[2 * i], 2);
    std::memcpy(&value, &wide[4 * i], 4);
    std::memcpy(&master, &masters[4 * i], 4);
    seen.insert(bits);
    low = static_cast<uint16_t>(bits - 1);
    high = static_cast<uint16_t>(bits + 1);
    const uint32_t low_bits = static_cast<uint32_t>(low) << 16;
    const uint32_t high_bits = static_cast<uint32_t>(high) << 16;
    std::memcpy(&below, &low_bits, 4);
    std::memcpy(&above, &high_bits, 4);
    exact += master == value ? 1 : 0;
    // Nearest, and where two are as near, the even one.
    const double d = master, to = d > value ? d - value : value - d;
    EXPECT_LE(to, (d > value ? above - d : d - below)) << bits;
    if (to == (d > value ? above - d : d - below)) {
      EXPECT_EQ(bits % 2, 0);
    }
  }
  EXPECT_EQ(seen.size(), all.ids.size());
  EXPECT_LT(exact, 10);
}

}  // namespace
}  // namespace weight_sync::refit::testing
