// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/manifest.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/map_source.h"
#include "refit/maps/tree_check.h"
#include "refit/maps/weight_map.h"
#include "refit/refit_info_json.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using testing::CheckedModel;
using testing::Elements;
using testing::FamilyOf;
using ::testing::HasSubstr;
using testing::HfFused;
using testing::HfShapes;
using testing::InfoOf;
using testing::LayoutCase;
using testing::LayoutCases;
using testing::ModelSpec;
using testing::TinyModel;

ModelConfig ConfigOf(const ModelSpec& m) { return *ParseModelConfig(testing::HubConfigJson(m)); }

// The first of the model's cases in this layout that has a manifest.
LayoutCase CaseOf(const ModelSpec& m, const std::string& layout) {
  for (const LayoutCase& c : LayoutCases(m)) {
    if (c.manifest && c.layout.name == layout && c.target == "hf") return c;
  }
  ADD_FAILURE() << "no case of " << m.name << " in " << layout;
  return {};
}

CheckpointForm FormOf(const char* model) {
  const ModelSpec m = TinyModel(model);
  return Manifest(InfoOf(HfShapes(m))).Form(ConfigOf(m));
}

TEST(ManifestTest, RecordsNamesShapesDTypesAndOrder) {
  const ModelSpec m = TinyModel("NextMtp");
  const auto written = CheckedModel::Write(m, CaseOf(m, "maxtext"), testing::Storage::kBF16);
  ASSERT_THAT(written, IsOk());
  const auto manifest = Manifest::Record(written->checkpoint());
  ASSERT_THAT(manifest, IsOk());
  ASSERT_EQ(manifest->tensors().size(), 120);
  for (int t = 0; t < 120; ++t) {
    const NamedTensor& tensor = written->checkpoint().tensors()[static_cast<size_t>(t)];
    EXPECT_EQ(manifest->tensors()[t].name, tensor.name);
    EXPECT_EQ(manifest->tensors()[t].shape, tensor.tensor.shape());
    EXPECT_EQ(manifest->tensors()[t].dtype, tensor.tensor.dtype());
  }
}

TEST(ManifestTest, AsJsonAndBackItMakesTheSameMap) {
  const ModelSpec m = TinyModel("GemmaPleMultimodal");
  const Manifest manifest(InfoOf(HfShapes(m)));
  const auto text = RefitInfoToJson(manifest.tensors());
  ASSERT_THAT(text, IsOk());
  const auto tensors = RefitInfoFromJson(*text);
  ASSERT_THAT(tensors, IsOk());
  const Manifest again(*tensors);
  const auto map = WeightMap::Build(FamilyOf(m), ConfigOf(m), {"tunix"}, {"", &manifest});
  const auto same = WeightMap::Build(FamilyOf(m), ConfigOf(m), {"tunix"}, {"", &again});
  ASSERT_THAT(map, IsOk());
  ASSERT_THAT(same, IsOk());
  ASSERT_EQ(same->hf().size(), m.tensors);
  for (int t = 0; t < map->hf().size(); ++t) {
    EXPECT_EQ(same->hf()[t].name, map->hf()[t].name);
    EXPECT_EQ(same->hf()[t].shape, map->hf()[t].shape);
    EXPECT_EQ(same->hf()[t].dtype, map->hf()[t].dtype);
    EXPECT_EQ(same->passes_through(t), map->passes_through(t));
  }
}

TEST(ManifestTest, TellsTheFormOfTheCheckpoint) {
  EXPECT_FALSE(FormOf("Qwen3Tied").tied_lm_head);
  EXPECT_TRUE(FormOf("Qwen3TiedHeadOnDisk").tied_lm_head);
  EXPECT_FALSE(FormOf("GemmaPle").shared_kv);
  EXPECT_TRUE(FormOf("GemmaPleSharedKvOnDisk").shared_kv);
  EXPECT_TRUE(FormOf("GemmaMoeSharedKvOnDisk").shared_kv);
  EXPECT_FALSE(FormOf("GemmaMoe").shared_kv);  // nothing is shared
  EXPECT_FALSE(FormOf("GemmaPleSharedKvOnDisk").language_model_prefix);
  EXPECT_TRUE(FormOf("GemmaPleMultimodal").language_model_prefix);
  EXPECT_TRUE(FormOf("GemmaPleMultimodal").shared_kv);

  const ModelSpec moe = TinyModel("Moe"), gemma = TinyModel("GemmaMoe");
  EXPECT_EQ(Manifest(InfoOf(HfShapes(moe))).TargetLayout(), "hf");
  EXPECT_EQ(Manifest(InfoOf(HfFused(moe, HfShapes(moe)))).TargetLayout(), "hf-fused");
  EXPECT_EQ(Manifest(InfoOf(HfShapes(gemma))).TargetLayout(), "hf");
}

TEST(ManifestTest, ItsOrderIsReplayed) {
  const ModelSpec m = TinyModel("Moe");
  std::vector<Elements> backwards = HfShapes(m);
  std::reverse(backwards.begin(), backwards.end());
  const Manifest manifest(InfoOf(backwards));
  const auto map = WeightMap::Build(FamilyOf(m), ConfigOf(m), {"tunix"}, {"", &manifest});
  ASSERT_THAT(map, IsOk());
  for (int t = 0; t < map->hf().size(); ++t) {
    EXPECT_EQ(map->hf()[t].name, backwards[static_cast<size_t>(t)].name);
  }
}

// A_log as float32 in a checkpoint of bfloat16: what the manifest says is sent, from arrays of
// either type.
TEST(ManifestTest, ItsDTypesAreReplayed) {
  const ModelSpec m = TinyModel("Next");
  std::vector<TensorSpec> specs = InfoOf(HfShapes(m)).tensors();
  for (TensorSpec& tensor : specs) {
    if (absl::EndsWith(tensor.name, ".A_log")) tensor.dtype = DType::kF32;
  }
  const Manifest manifest(*RefitInfo::Create(specs));
  const auto map = WeightMap::Build(FamilyOf(m), ConfigOf(m), {"maxtext"}, {"", &manifest});
  ASSERT_THAT(map, IsOk());
  for (const TensorSpec& tensor : map->hf().tensors()) {
    EXPECT_EQ(tensor.dtype, absl::EndsWith(tensor.name, ".A_log") ? DType::kF32 : DType::kBF16)
        << tensor.name;
  }

  const LayoutCase c = CaseOf(m, "maxtext");
  for (const testing::Storage a_log : {testing::Storage::kBF16, testing::Storage::kF32}) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TrainerArray> arrays;
    for (const Elements& tensor : c.tree) {
      const bool own = absl::EndsWith(tensor.name, "-A_log") && a_log == testing::Storage::kF32;
      bytes.push_back(Bytes(tensor, own ? a_log : testing::Storage::kBF16));
      arrays.push_back({tensor.name, TensorView::Contiguous(bytes.back().data(),
                                                            own ? DType::kF32 : DType::kBF16,
                                                            *Shape::Create(tensor.shape))});
    }
    StepGate gate;
    const auto source = MapSource::Create(*map, arrays, nullptr, &gate);
    ASSERT_THAT(source, IsOk());
    const int tensor = *map->hf().Find("model.layers.1.linear_attn.A_log");
    const std::vector<Bucket> buckets = {{{{tensor, Box::Whole({4}), 0, 16}}, 16}};
    const auto program = (*source)->Compile(buckets);
    ASSERT_THAT(program, IsOk());
    Stream stream = Stream::Host();
    std::vector<std::byte> slot(16);
    ASSERT_THAT((*program)->Fill(0, {slot.data(), 16, Device::Host()}, stream), IsOk());
    const testing::ByName hf(c.hf);
    EXPECT_EQ(slot, Bytes(hf("model.layers.1.linear_attn.A_log"),
                          a_log == testing::Storage::kF32 ? testing::Storage::kF32
                                                          : testing::Storage::kBF16AsF32));
  }
}

TEST(ManifestTest, EveryDifferenceFromTheConfigIsListedForWhoAsks) {
  const ModelSpec m = TinyModel("Moe");
  std::vector<TensorSpec> specs = InfoOf(HfShapes(m)).tensors();
  ManifestDifferences expected;
  std::vector<TensorSpec> changed;
  for (TensorSpec& tensor : specs) {
    if (absl::StrContains(tensor.name, ".mlp.experts.1.")) {  // more than an error shows
      expected.missing.push_back(tensor.name);
      continue;
    }
    if (tensor.name == "model.norm.weight") {
      tensor.shape = {9};
      expected.shape.push_back("'model.norm.weight' [9], by the config [8]");
    }
    changed.push_back(tensor);
  }
  changed.push_back({"extra", {1}, DType::kBF16});
  expected.unknown = {"extra"};
  ASSERT_GT(expected.missing.size(), 5u);
  const Manifest manifest(*RefitInfo::Create(changed));
  ManifestDifferences found;
  EXPECT_THAT(WeightMap::Build(FamilyOf(m), ConfigOf(m), {"tunix"}, {"", &manifest, &found}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 in the checkpoint")));
  EXPECT_EQ(found.unknown, expected.unknown);
  EXPECT_EQ(found.missing, expected.missing);
  EXPECT_EQ(found.shape, expected.shape);
}

}  // namespace
}  // namespace weight_sync::refit
