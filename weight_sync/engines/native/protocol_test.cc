// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/engines/native/protocol.h"

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::native {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

EngineState SomeState() {
  EngineState state;
  state.version = 41;
  state.paused = true;
  state.dirty = true;
  state.awake = {MemoryTag::kKvCache};
  state.incarnation = "12-abc";
  return state;
}

const std::vector<NamedDigest> kDigests = {{"a \"quoted\" name", {1, 2}},
                                           {"z", {~uint64_t{0}, uint64_t{1} << 63}}};

TEST(NativeProtocolTest, ARequestReadsBackAsItWasWritten) {
  const RequestBody body{
      1 << 30, std::numeric_limits<Version>::max(), {MemoryTag::kWeights, MemoryTag::kKvCache}};
  const auto read = RequestFromJson(ToJson(body));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->timeout_ms, body.timeout_ms);
  EXPECT_EQ(read->version, body.version);
  EXPECT_EQ(read->tags, body.tags);
}

TEST(NativeProtocolTest, AStateReadsBackAsItWasWritten) {
  for (const std::optional<Version> version :
       {std::optional<Version>(41), std::optional<Version>()}) {
    EngineState state = SomeState();
    state.version = version;
    const auto read = StateFromJson(ToJson(state));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->version, version);
    EXPECT_TRUE(read->paused);
    EXPECT_TRUE(read->dirty);
    EXPECT_THAT(read->awake, ElementsAre(MemoryTag::kKvCache));
    EXPECT_EQ(read->incarnation, "12-abc");
  }
}

TEST(NativeProtocolTest, DigestsReadBackAsTheyWereWritten) {
  const auto read = DigestsFromJson(ToJson(kDigests));
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*read)[i].name, kDigests[i].name);
    EXPECT_EQ((*read)[i].digest, kDigests[i].digest);
  }
}

TEST(NativeProtocolTest, NamesThatAreNoUtf8AreToldWithoutThrowing) {
  EngineState state = SomeState();
  state.incarnation = "\xFF";
  EXPECT_THAT(StateFromJson(ToJson(state)), IsOk());
  const auto read = DigestsFromJson(ToJson(std::vector<NamedDigest>{{"bad \xFF name", {}}}));
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 1u);
  EXPECT_NE((*read)[0].name, "bad \xFF name");
}

TEST(NativeProtocolTest, MalformedMessagesAreRefused) {
  for (const char* text : {"", "{", "null", "[]", "7", "\"state\"", "\xFF"}) {
    EXPECT_THAT(RequestFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(StateFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(DigestsFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(
      RequestFromJson(R"({"timeout_ms": 1, "version": 1, "tags": ["weights", "optimizer"]})"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("optimizer")));
  for (const char* tags : {"\"weights\"", "7", "null", "{\"a\": \"weights\"}", "[7]"}) {
    const std::string text =
        std::string(R"({"timeout_ms": 1, "version": 1, "tags": )") + tags + "}";
    EXPECT_THAT(RequestFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(DigestsFromJson(R"({"a": "12"})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'12'")));
  EXPECT_THAT(DigestsFromJson(R"({"a": 12})"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(NativeProtocolTest, MutatedMessagesNeverThrow) {
  const std::vector<std::string> seeds = {ToJson(RequestBody{1, 2, {MemoryTag::kWeights}}),
                                          ToJson(SomeState()), ToJson(kDigests)};
  const std::string alphabet = "{}[]\",:0123456789-+.eEtrufalsn\\ \xFF";
  std::mt19937 random(23);
  for (int round = 0; round < 5'000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (uint32_t edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
      }
    }
    for (const absl::Status& read : {RequestFromJson(text).status(), StateFromJson(text).status(),
                                     DigestsFromJson(text).status()}) {
      EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read)) << text << "\n" << read;
    }
  }
}

}  // namespace
}  // namespace weight_sync::native
