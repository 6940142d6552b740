// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/layout_argument.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::tools {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Resolved(const std::string& text, const std::string& model) {
  const auto argument = ParseLayoutArgument(text);
  EXPECT_THAT(argument, IsOk());
  const auto config =
      refit::ParseModelConfig(refit::testing::HubConfigJson(refit::testing::TinyModel(model)));
  EXPECT_THAT(config, IsOk());
  return LayoutText(LayoutOf(*argument, *config));
}

TEST(LayoutArgumentTest, NamesALayout) {
  EXPECT_THAT(KnownLayouts(), ElementsAre("hf", "hf-fused", "tunix", "maxtext"));
  for (const std::string& name : KnownLayouts()) EXPECT_EQ(Resolved(name, "Qwen3Tied"), name);
}

TEST(LayoutArgumentTest, ScannedLayersTakeTheirPeriodFromTheConfig) {
  EXPECT_EQ(Resolved("maxtext:scanned", "Qwen3Tied"), "maxtext:scanned,axis=1,period=1");
  EXPECT_EQ(Resolved("maxtext:scanned", "NextTwoBlocks"), "maxtext:scanned,axis=1,period=4");
  EXPECT_EQ(Resolved("maxtext:scanned", "Next"), "maxtext:scanned,axis=1,period=4");
  EXPECT_EQ(Resolved("maxtext:scanned,axis=0,period=8", "NextTwoBlocks"),
            "maxtext:scanned,axis=0,period=8");
  EXPECT_EQ(Resolved("maxtext:axis=0,scanned", "Moe"), "maxtext:scanned,axis=0,period=1");
}

TEST(LayoutArgumentTest, WhatIsWrongIsSaid) {
  const auto refused = [](const char* text, const char* why) {
    EXPECT_THAT(ParseLayoutArgument(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
    EXPECT_THAT(LayoutValidator()(text), HasSubstr(why));
  };
  refused("megatron", "no layout is called 'megatron'; there are hf, hf-fused, tunix, maxtext");
  refused("", "no layout is called ''");
  refused("maxtext:", "'' is none of scanned, axis=N, period=N");
  refused("maxtext:scanned,axes=1", "'axes=1' is none of");
  refused("maxtext:scanned,axis=one", "'axis=one' has no number");
  refused("maxtext:scanned,period", "'period' has no number");
  refused("maxtext:axis=1", "write 'maxtext:scanned,axis=1'");
}

}  // namespace
}  // namespace weight_sync::tools
