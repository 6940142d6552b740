// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Every family in every layout, against trees that were written down by formula.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/tree_check.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/convert/convert.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::convert {
namespace {

using ::absl_testing::IsOk;
using refit::testing::Elements;
using refit::testing::LayoutCase;
using refit::testing::ModelSpec;
using refit::testing::Storage;
using ::testing::IsEmpty;
using tools::NewFolder;

tools::LayoutArgument ArgumentOf(const refit::LayoutOptions& layout) {
  tools::LayoutArgument argument;
  argument.name = layout.name;
  argument.scanned = layout.scanned;
  argument.axis = layout.scan_axis;
  if (layout.scanned) argument.period = layout.scan_period;
  return argument;
}

Result Converted(Options options) {
  options.scratch = ::testing::TempDir();
  tools::ProgressLine silent(stderr, /*live=*/false);
  auto result = Convert(options, silent);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? *std::move(result) : Result();
}

bool IsPadded(const LayoutCase& c) { return absl::StrContains(c.label, "padded"); }

class ConversionsTest : public ::testing::TestWithParam<ModelSpec> {
 protected:
  // The checkpoint of a case, with its config.json.
  static std::string Checkpoint(const LayoutCase& c) {
    std::string folder = NewFolder();
    tools::WriteModel(GetParam(), c.hf, folder);
    return folder;
  }
};

TEST_P(ConversionsTest, ACheckpointBecomesATree) {
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    if (IsPadded(c) || !c.manifest) continue;  // nobody pads but the trainer
    SCOPED_TRACE(c.label);
    Options options;
    options.in = options.config = Checkpoint(c);
    options.from.name = c.target;
    options.to = ArgumentOf(c.layout);
    if (refit::IsHfForm(options.to.name)) continue;  // the tests below
    for (const bool masters : {false, true}) {
      options.out = NewFolder();
      options.float32_masters = masters;
      const Result result = Converted(options);
      tools::ExpectTensors(options.out, c.tree, masters ? Storage::kBF16AsF32 : Storage::kBF16);
      std::vector<std::string> unsent;
      for (const Elements& tensor : c.tree) {
        if (!tensor.sent) unsent.push_back(tensor.name);
      }
      EXPECT_THAT(result.zeros, ::testing::UnorderedElementsAreArray(unsent));
    }
  }
}

TEST_P(ConversionsTest, ATreeBecomesACheckpoint) {
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    if (refit::IsHfForm(c.layout.name)) continue;
    if (GetParam().multimodal && !c.manifest) continue;  // refused: convert_test
    SCOPED_TRACE(c.label);
    Options options;
    options.in = NewFolder();
    options.out = NewFolder();
    options.config = Checkpoint(c);
    options.from = ArgumentOf(c.layout);
    options.to.name = c.target;
    if (c.manifest) options.manifest_from = options.config;
    tools::WriteTensors(c.tree, options.in);
    EXPECT_EQ(Converted(options).rounded, 0);
    tools::ExpectTensors(options.out, c.hf);

    options.in = NewFolder();
    options.out = NewFolder();
    tools::WriteTensors(c.tree, options.in, Storage::kBF16AsMaster);
    EXPECT_GT(Converted(options).rounded, 0);
    tools::ExpectTensors(options.out, c.hf);
  }
}

TEST_P(ConversionsTest, ExpertsAreStackedAndUnstacked) {
  const std::vector<Elements> hf = HfTensors(GetParam()), fused = HfFused(GetParam(), hf);
  if (GetParam().is_gemma()) return;  // has one form
  const std::pair<const char*, const std::vector<Elements>*> forms[] = {{"hf", &hf},
                                                                        {"hf-fused", &fused}};
  for (const auto& [from, in] : forms) {
    for (const auto& [to, out] : forms) {
      SCOPED_TRACE(std::string(from) + " to " + to);
      Options options;
      options.in = options.config = NewFolder();
      options.out = NewFolder();
      options.from.name = from;
      options.to.name = to;
      tools::WriteModel(GetParam(), *in, options.in);
      EXPECT_THAT(Converted(options).left_out, IsEmpty());
      tools::ExpectTensors(options.out, *out);
    }
  }
}

TEST_P(ConversionsTest, ATreeBecomesAnotherTrainersTree) {
  std::vector<LayoutCase> trees;
  for (LayoutCase& c : LayoutCases(GetParam())) {
    const bool plain = c.manifest && c.target == "hf" && !refit::IsHfForm(c.layout.name);
    if (plain) trees.push_back(std::move(c));
  }
  for (const LayoutCase& from : trees) {
    for (const LayoutCase& to : trees) {
      if (IsPadded(to)) continue;
      SCOPED_TRACE(from.label + " to " + to.label);
      Options options;
      options.in = NewFolder();
      options.out = NewFolder();
      options.config = options.manifest_from = Checkpoint(from);
      options.from = ArgumentOf(from.layout);
      options.to = ArgumentOf(to.layout);
      tools::WriteTensors(from.tree, options.in);
      Converted(options);
      tools::ExpectTensors(options.out, to.tree);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, ConversionsTest,
                         ::testing::ValuesIn(refit::testing::TinyModels()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace weight_sync::convert
