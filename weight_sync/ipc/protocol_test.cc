// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/protocol.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::ipc {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

HelloBody SomeHello() {
  HelloBody body;
  body.ring_name = "/weight_sync.0.12.3";
  body.ring = {4, 1 << 20};
  body.geometry = {1 << 20, 512};
  return body;
}

BeginBody SomeBegin() {
  BeginBody body;
  body.ring_name = "/weight_sync.0.1.2";
  body.plan.version = std::numeric_limits<int64_t>::max();
  body.plan.buckets = 12345;
  body.plan.plan = {0xFEDCBA9876543210u, 0x8000000000000001u};
  body.plan.wire_digests = false;
  body.position = std::numeric_limits<uint64_t>::max();
  body.timeout_ms = 1 << 30;
  return body;
}

TEST(IpcProtocolTest, HelloReadsBackAsItWasWritten) {
  const HelloBody body = SomeHello();
  const auto read = HelloFromJson(ToJson(body));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->protocol, kProtocolVersion);
  EXPECT_EQ(read->ring_name, body.ring_name);
  EXPECT_EQ(read->ring.slots, body.ring.slots);
  EXPECT_EQ(read->ring.slot_bytes, body.ring.slot_bytes);
  EXPECT_EQ(read->geometry.bucket_bytes, body.geometry.bucket_bytes);
  EXPECT_EQ(read->geometry.alignment, body.geometry.alignment);
}

TEST(IpcProtocolTest, BeginReadsBackAsItWasWritten) {
  const BeginBody body = SomeBegin();
  const auto read = BeginFromJson(ToJson(body));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->ring_name, body.ring_name);
  EXPECT_EQ(read->plan.version, body.plan.version);
  EXPECT_EQ(read->plan.buckets, body.plan.buckets);
  EXPECT_EQ(read->plan.plan, body.plan.plan);
  EXPECT_EQ(read->plan.wire_digests, body.plan.wire_digests);
  EXPECT_EQ(read->position, body.position);
  EXPECT_EQ(read->timeout_ms, body.timeout_ms);
}

TEST(IpcProtocolTest, AReceiptReadsBackAsItWasWritten) {
  const auto read = ReceiptFromJson(ToJson(Receipt{1, 2, int64_t{1} << 40}));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->tensors, 1);
  EXPECT_EQ(read->buckets, 2);
  EXPECT_EQ(read->bytes, int64_t{1} << 40);
}

TEST(IpcProtocolTest, EveryStatusReadsBackAsItWasWritten) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::DataLossError("bucket 3"), absl::InternalError(""),
        absl::UnauthenticatedError("the last of the codes"),
        absl::AbortedError("\"quoted\" \\ and\nlines and \xC3\xA9")}) {
    absl::Status read = absl::UnknownError("untouched");
    ASSERT_THAT(StatusFromJson(StatusToJson(status), read), IsOk());
    EXPECT_EQ(read, status);
  }
}

TEST(IpcProtocolTest, AStatusWhoseTextIsNoUtf8StillReachesTheOtherSide) {
  absl::Status read;
  ASSERT_THAT(StatusFromJson(StatusToJson(absl::InternalError("bad \xFF byte")), read), IsOk());
  EXPECT_THAT(read,
              StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("bad "), HasSubstr(" byte"))));
}

TEST(IpcProtocolTest, AnotherProtocolVersionIsNamedWhateverElseTheHelloHolds) {
  EXPECT_THAT(HelloFromJson(R"({"protocol": 2, "ring": "of another form"})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("protocol 2"), HasSubstr("this engine 1"))));
}

// Reads `text` as every message; each must be refused or read, never throw.
void ReadAll(const std::string& text) {
  absl::Status status;
  for (const absl::Status& read : {HelloFromJson(text).status(), BeginFromJson(text).status(),
                                   ReceiptFromJson(text).status(), StatusFromJson(text, status)}) {
    EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read)) << text << "\n" << read;
  }
}

TEST(IpcProtocolTest, MalformedMessagesAreRefused) {
  for (const char* text :
       {"", "{", "null", "[]", "7", "\"hello\"", "{}", "\xFF", "{\"protocol\": 1}",
        "{\"protocol\": \"1\"}", "{\"code\": 1, \"message\": 2}"}) {
    EXPECT_THAT(HelloFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(BeginFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(ReceiptFromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    absl::Status status;
    EXPECT_THAT(StatusFromJson(text, status), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(BeginFromJson(R"({"ring_name": "r", "version": 1, "buckets": 1, "plan": "xyz",
                                "wire_digests": true, "position": 0, "timeout_ms": 1})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'xyz'")));
}

TEST(IpcProtocolTest, MutatedMessagesNeverThrow) {
  const std::vector<std::string> seeds = {ToJson(SomeHello()), ToJson(SomeBegin()),
                                          ToJson(Receipt{1, 2, 3}),
                                          StatusToJson(absl::DataLossError("bucket 3"))};
  const std::string alphabet = "{}[]\",:0123456789-+.eEtrufalsn\\ \xFF";
  std::mt19937 random(17);
  for (int round = 0; round < 5'000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (uint32_t edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 3:
          text.resize(at);
          break;
      }
    }
    ReadAll(text);
  }
  ReadAll(std::string(100'000, '['));
  ReadAll(std::string(100'000, '{'));
}

}  // namespace
}  // namespace weight_sync::ipc
