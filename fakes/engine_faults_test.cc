// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/engine_faults.h"

#include <vector>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

TEST(EngineFaultsTest, EveryPointAndActionSurvivesTheJson) {
  std::vector<EngineFault> faults;
  for (int at = 0; at <= static_cast<int>(EngineFault::At::kDigests); ++at) {
    for (int action = 0; action <= static_cast<int>(EngineFault::Do::kSwap); ++action) {
      EngineFault fault;
      fault.update = at - 1;
      fault.at = static_cast<EngineFault::At>(at);
      fault.load = int64_t{10} * action;
      fault.action = static_cast<EngineFault::Do>(action);
      fault.text = "out of \"memory\"\n";
      fault.tensor = "model.norm.weight";
      fault.other = "lm_head.weight";
      faults.push_back(fault);
    }
  }
  const auto read = FaultsFromJson(FaultsToJson(faults));
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), faults.size());
  for (size_t i = 0; i < faults.size(); ++i) {
    EXPECT_EQ((*read)[i].update, faults[i].update);
    EXPECT_EQ((*read)[i].at, faults[i].at);
    EXPECT_EQ((*read)[i].load, faults[i].load);
    EXPECT_EQ((*read)[i].action, faults[i].action);
    EXPECT_EQ((*read)[i].text, faults[i].text);
    EXPECT_EQ((*read)[i].tensor, faults[i].tensor);
    EXPECT_EQ((*read)[i].other, faults[i].other);
  }
}

TEST(EngineFaultsTest, WhatIsLeftOutHasItsDefault) {
  const auto read = FaultsFromJson(R"([{"at": "load", "do": "drop", "tensor": "a"}])");
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].update, -1);
  EXPECT_EQ((*read)[0].load, 0);
}

TEST(EngineFaultsTest, AScriptThatSaysNothingKnownIsRefused) {
  for (const char* text : {"", "[", "{}x", R"([{"do": "fail"}])", R"([{"at": "load"}])", "[7]"}) {
    EXPECT_THAT(FaultsFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(FaultsFromJson(R"([{"at": "laod", "do": "fail"}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("laod")));
  EXPECT_THAT(FaultsFromJson(R"([{"at": "load", "do": "explode"}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("explode")));
}

}  // namespace
}  // namespace weight_sync::fakes
