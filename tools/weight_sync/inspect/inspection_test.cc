// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/inspect/inspection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::inspect {
namespace {

using ::absl_testing::IsOk;
using refit::testing::Elements;
using refit::testing::HfFused;
using refit::testing::HfTensors;
using refit::testing::ModelSpec;
using refit::testing::TinyModel;
using refit::testing::TinyModels;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Inspection InspectTensors(const ModelSpec& model, const std::vector<Elements>& tensors,
                          const std::optional<refit::LayoutOptions>& layout = std::nullopt) {
  const std::string folder = tools::NewFolder();
  tools::WriteModel(model, tensors, folder);
  const auto opened = tools::OpenSourceModel(folder, "");
  EXPECT_THAT(opened, IsOk());
  return Inspect(*opened, layout);
}

Inspection InspectModel(const std::string& name,
                        const std::optional<refit::LayoutOptions>& layout = std::nullopt) {
  return InspectTensors(TinyModel(name), HfTensors(TinyModel(name)), layout);
}

TEST(InspectionTest, CountsWhatIsThere) {
  for (const ModelSpec& model : TinyModels()) {
    SCOPED_TRACE(model.name);
    const Inspection found = InspectTensors(model, HfTensors(model));
    EXPECT_TRUE(Ok(found)) << found.details.error;
    EXPECT_EQ(found.model_type, model.model_type);
    EXPECT_EQ(found.form, "hf");
    EXPECT_EQ(found.layers, model.layers);
    EXPECT_EQ(found.files, 1);
    EXPECT_EQ(found.tensors, model.tensors);
    EXPECT_EQ(found.elements, model.elements);
    EXPECT_EQ(found.bytes, 2 * model.elements);
    ASSERT_EQ(found.dtypes.size(), 1u);
    EXPECT_EQ(found.dtypes[0].dtype, "BF16");
    EXPECT_EQ(found.dtypes[0].tensors, model.tensors);
    EXPECT_EQ(found.dtypes[0].bytes, 2 * model.elements);
    EXPECT_EQ(found.tied_head, model.tied);
    EXPECT_EQ(found.tied_head_written, model.lm_head_on_disk);
    EXPECT_EQ(found.shared_kv_written, model.shared_kv_on_disk);
    EXPECT_EQ(found.language_model_prefix, model.multimodal);
    // Each tensor once, and as many as the rows say or more pass through.
    EXPECT_EQ(static_cast<int64_t>(found.details.hf_tensors.size()), model.tensors);
    int64_t filled = 0;
    for (const RowCount& row : found.details.rows) filled += row.regions;
    const auto passing =
        std::count_if(found.details.hf_tensors.begin(), found.details.hf_tensors.end(),
                      [](const HfTensor& t) { return t.passes_through; });
    EXPECT_EQ(filled + passing + (model.lm_head_on_disk ? 1 : 0), model.tensors);
  }
}

std::map<std::string, std::string> Verdicts(const Inspection& found) {
  std::map<std::string, std::string> verdicts;
  for (const LayoutVerdict& one : found.layouts) {
    EXPECT_EQ(one.exact, one.reason.empty());
    verdicts[one.layout] = one.exact ? "exact" : one.reason;
  }
  return verdicts;
}

TEST(InspectionTest, SaysOfEveryLayoutWhetherItIsExact) {
  EXPECT_THAT(
      Verdicts(InspectModel("Moe")),
      UnorderedElementsAre(std::make_pair("hf", "exact"), std::make_pair("hf-fused", "exact"),
                           std::make_pair("tunix", "exact"), std::make_pair("maxtext", "exact"),
                           std::make_pair("maxtext:scanned,axis=1,period=1", "exact")));
  auto next = Verdicts(InspectModel("NextMtp"));
  EXPECT_EQ(next["maxtext:scanned,axis=1,period=4"], "exact");
  EXPECT_THAT(next["tunix"], HasSubstr("tunix has no model of this family"));
  auto llama = Verdicts(InspectModel("Llama"));
  EXPECT_EQ(llama["tunix"], "exact");
  EXPECT_THAT(llama["maxtext"], HasSubstr("head_dim^-0.5"));
  EXPECT_THAT(llama["maxtext:scanned,axis=1,period=1"], HasSubstr("head_dim^-0.5"));
  EXPECT_THAT(Verdicts(InspectModel("GemmaMoe"))["maxtext"], HasSubstr("square root"));
}

TEST(InspectionTest, ShowsATrainersSide) {
  const ModelSpec model = TinyModel("Moe");
  const std::vector<Elements> tree = refit::testing::TunixTree(model, HfTensors(model));
  const Inspection found = InspectModel("Moe", refit::LayoutOptions{"tunix"});
  EXPECT_EQ(found.details.layout, "tunix");
  std::map<std::string, std::vector<int64_t>> shapes, expected;
  for (const TrainerTensor& one : found.details.trainer_tensors) shapes[one.name] = one.shape;
  for (const Elements& one : tree) expected[one.name] = one.shape;
  EXPECT_EQ(shapes, expected);
  const auto row = std::find_if(
      found.details.rows.begin(), found.details.rows.end(),
      [](const RowCount& r) { return absl::EndsWith(r.hf_name, "{e}.down_proj.weight"); });
  ASSERT_NE(row, found.details.rows.end());
  EXPECT_EQ(row->trainer_name, "layers.{i}.mlp.down_proj");
  EXPECT_EQ(row->hf_axes, "h m");
  EXPECT_EQ(row->trainer_axes, "{e} m h");
  EXPECT_EQ(row->regions, model.layers * model.experts);
}

TEST(InspectionTest, ShowsPaddingAndScannedLayers) {
  refit::LayoutOptions layout{"maxtext"};
  layout.scanned = true;
  const Inspection found = InspectModel("Qwen3Tied", layout);
  EXPECT_EQ(found.details.layout, "maxtext:scanned,axis=1,period=1");
  for (const TrainerTensor& one : found.details.trainer_tensors) {
    if (one.name == "params-token_embedder-embedding") {
      EXPECT_THAT(one.padded, ElementsAre(0));
    } else {
      EXPECT_THAT(one.padded, IsEmpty()) << one.name;
    }
    if (one.name == "params-decoder-layers-mlp-wi_0-kernel") {
      EXPECT_THAT(one.shape, ElementsAre(8, 2, 10));
    }
  }
}

std::vector<std::string> Passing(const Inspection& found, const std::string& part) {
  std::vector<std::string> names;
  for (const HfTensor& one : found.details.hf_tensors) {
    if (one.passes_through && one.part == part) names.push_back(one.name);
  }
  return names;
}

TEST(InspectionTest, TellsPartsThatNoTrainerHoldsFromWhatALayoutLacks) {
  EXPECT_EQ(Passing(InspectModel("NextMtp", refit::LayoutOptions{"maxtext"}), "mtp.").size(), 26u);
  const Inspection towers = InspectModel("GemmaPleMultimodal", refit::LayoutOptions{"tunix"});
  EXPECT_THAT(Passing(towers, "model.embed_vision."),
              ElementsAre("model.embed_vision.embedding_projection.weight"));
  EXPECT_THAT(Passing(towers, ""), IsEmpty());
  // tunix has no biases of Qwen3.
  const Inspection biases = InspectModel("Qwen3Biases", refit::LayoutOptions{"tunix"});
  EXPECT_TRUE(Ok(biases));
  EXPECT_EQ(Passing(biases, "").size(), 8u);
  EXPECT_THAT(Passing(InspectModel("Qwen3Biases"), ""), IsEmpty());
}

TEST(InspectionTest, ShowsWhatATrainerHoldsForNobody) {
  const Inspection found = InspectModel("GemmaPle", refit::LayoutOptions{"tunix"});
  std::vector<std::string> unsent;
  for (const TrainerTensor& one : found.details.trainer_tensors) {
    if (!one.sent) unsent.push_back(one.name);
  }
  EXPECT_THAT(unsent,
              UnorderedElementsAre("layers.4.attn.kv_einsum.w", "layers.4.attn._key_norm.scale",
                                   "layers.5.attn.kv_einsum.w", "layers.5.attn._key_norm.scale"));
}

TEST(InspectionTest, StackedExpertsAreAFormOfTheirOwn) {
  const ModelSpec model = TinyModel("Moe");
  const Inspection found = InspectTensors(model, HfFused(model, HfTensors(model)));
  EXPECT_TRUE(Ok(found)) << found.details.error;
  EXPECT_EQ(found.form, "hf-fused");
  EXPECT_EQ(found.details.layout, "hf-fused");
}

TEST(InspectionTest, NamesEverythingThatIsUnmatched) {
  const ModelSpec model = TinyModel("Moe");
  std::vector<Elements> tensors = HfTensors(model);
  std::vector<std::string> missing;
  for (size_t i = tensors.size(); i-- > 0;) {
    if (!absl::StrContains(tensors[i].name, ".experts.2.")) continue;
    missing.push_back(tensors[i].name);
    tensors.erase(tensors.begin() + static_cast<int64_t>(i));
  }
  Elements extra = tensors[0];
  extra.name = "model.layers.2.input_layernorm.weight";  // a layer too many
  tensors.push_back(extra);
  for (Elements& tensor : tensors) {
    if (tensor.name == "model.norm.weight") tensor.shape = {2, 4};
  }
  ASSERT_EQ(missing.size(), 6u);  // more than an error shows
  const Inspection found = InspectTensors(model, tensors);
  EXPECT_FALSE(Ok(found));
  EXPECT_THAT(found.unmatched.unknown, ElementsAre(extra.name));
  EXPECT_THAT(found.unmatched.missing, ::testing::UnorderedElementsAreArray(missing));
  EXPECT_THAT(found.unmatched.shape, ElementsAre("'model.norm.weight' [2, 4], by the config [8]"));
  EXPECT_THAT(found.layouts, IsEmpty());
}

}  // namespace
}  // namespace weight_sync::inspect
