// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The released models, names and shapes only: the maps' are those of the checkpoints.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "refit/maps/model_config.h"
#include "refit/maps/tree_check.h"
#include "refit/maps/weight_map.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using testing::Elements;
using testing::FamilyOf;
using testing::HfShapes;
using testing::HubConfigJson;
using testing::InfoOf;
using testing::ModelSpec;
using testing::PublishedModels;

class PublishedModelsTest : public ::testing::TestWithParam<ModelSpec> {};

// Layouts with names of their own, scanned where that exists.
std::vector<LayoutOptions> Layouts(const ModelSpec& m) {
  std::vector<LayoutOptions> layouts = {{"hf"}};
  if (!m.is_next()) layouts.push_back({"tunix"});
  if (m.is_gemma() || m.model_type == "llama") return layouts;
  layouts.push_back({"maxtext", /*scanned=*/true, /*scan_axis=*/1, m.is_next() ? 4 : 1});
  return layouts;
}

TEST_P(PublishedModelsTest, MapHasTheCheckpointsTensors) {
  const ModelSpec& m = GetParam();
  const std::vector<Elements> disk = HfShapes(m);
  const auto config = ParseModelConfig(HubConfigJson(m));
  ASSERT_THAT(config, IsOk());
  // Facts of the checkpoint that the config does not say: these need a manifest.
  const bool needs_manifest =
      m.lm_head_on_disk || m.shared_kv_on_disk || m.mtp || m.towers.vision_layers > 0;
  const Manifest manifest(InfoOf(disk));
  int64_t passed = 0;
  absl::flat_hash_map<std::string, const Elements*> expected;
  for (const Elements& tensor : disk) {
    expected[tensor.name] = &tensor;
    if (tensor.passes_through) passed += tensor.size();
  }
  for (const LayoutOptions& layout : Layouts(m)) {
    SCOPED_TRACE(layout.name);
    const auto map =
        WeightMap::Build(FamilyOf(m), *config, layout, {"", needs_manifest ? &manifest : nullptr});
    ASSERT_THAT(map, IsOk());
    EXPECT_EQ(map->hf().size(), m.tensors);
    int64_t elements = 0;
    for (int t = 0; t < map->hf().size(); ++t) {
      const TensorSpec& tensor = map->hf()[t];
      const auto found = expected.find(tensor.name);
      ASSERT_NE(found, expected.end()) << tensor.name;
      ASSERT_EQ(tensor.shape, *Shape::Create(found->second->shape)) << tensor.name;
      ASSERT_EQ(map->passes_through(t), found->second->passes_through) << tensor.name;
      elements += tensor.shape.num_elements();
    }
    EXPECT_EQ(elements, m.elements);
    EXPECT_EQ(map->hf().total_bytes(), 2 * m.elements);
    int64_t held = passed + (m.tied && m.lm_head_on_disk ? m.vocab * m.hidden : 0);
    for (const WeightMap::TrainerTensor& tensor : map->trainer()) {
      if (tensor.sent) held += tensor.shape.num_elements();
    }
    EXPECT_EQ(held, m.elements);
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, PublishedModelsTest, ::testing::ValuesIn(PublishedModels()),
                         [](const auto& model) {
                           std::string name;
                           for (const char c : model.param.name) {
                             name += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace weight_sync::refit
