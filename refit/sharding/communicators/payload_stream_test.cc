// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/payload_stream.h"

#include <sys/socket.h>

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::Optional;

struct Pair {
  Pair() {
    int ends[2];
    PCHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    sender = std::make_unique<PayloadSender>(base::UniqueFd(ends[0]));
    receiver = std::make_unique<PayloadReceiver>(base::UniqueFd(ends[1]));
  }
  std::unique_ptr<PayloadSender> sender;
  std::unique_ptr<PayloadReceiver> receiver;
};

std::vector<std::byte> Message(size_t bytes, size_t seed) {
  std::vector<std::byte> message(bytes);
  for (size_t i = 0; i < bytes; ++i) message[i] = static_cast<std::byte>(i * 7 / 3 + seed);
  return message;
}

std::optional<std::vector<std::byte>> Next(PayloadReceiver& receiver, int64_t bytes) {
  const auto message = receiver.Next(bytes);
  EXPECT_THAT(message, IsOk());
  if (!message.ok() || !message->has_value()) return std::nullopt;
  return std::vector<std::byte>((*message)->begin(), (*message)->end());
}

TEST(PayloadStreamTest, MessagesOfDifferentSizesArriveInOrder) {
  Pair pair;
  for (const size_t bytes : {1, 5000, 3, 40'000, 40'000}) {
    const std::vector<std::byte> message = Message(bytes, bytes);
    EXPECT_EQ(Next(*pair.receiver, static_cast<int64_t>(bytes)), std::nullopt);
    pair.sender->Send(message);
    ASSERT_TRUE(pair.sender->sent());
    EXPECT_THAT(Next(*pair.receiver, static_cast<int64_t>(bytes)), Optional(message));
  }
}

TEST(PayloadStreamTest, AMessageLongerThanTheSystemBuffersArrivesInParts) {
  Pair pair;
  const std::vector<std::byte> message = Message(3'000'001, 1);
  pair.sender->Send(message);
  EXPECT_FALSE(pair.sender->sent());
  std::optional<std::vector<std::byte>> got;
  while (!(got = Next(*pair.receiver, 3'000'001)).has_value()) pair.sender->Flush();
  EXPECT_EQ(got, message);
  EXPECT_TRUE(pair.sender->sent());
}

TEST(PayloadStreamTest, WhatIsSkippedIsDroppedAlsoFromItsMiddleOn) {
  Pair pair;
  const std::vector<std::byte> half_read = Message(1'000'000, 1), unread = Message(30'000, 2),
                               wanted = Message(500, 3);
  pair.sender->Send(half_read);
  EXPECT_EQ(Next(*pair.receiver, 1'000'000), std::nullopt);
  pair.receiver->Skip(1'000'000);
  pair.receiver->Skip(30'000);
  EXPECT_TRUE(pair.receiver->dropping());
  for (const auto* message : {&half_read, &unread, &wanted}) {
    if (message != &half_read) pair.sender->Send(*message);
    while (!pair.sender->sent()) {
      ASSERT_THAT(pair.receiver->Drop(), IsOk());
      pair.sender->Flush();
    }
  }
  EXPECT_THAT(Next(*pair.receiver, 500), Optional(wanted));
  EXPECT_FALSE(pair.receiver->dropping());
}

TEST(PayloadStreamTest, NumbersThatCannotBeDoNoHarm) {
  Pair pair;
  pair.receiver->Skip(std::numeric_limits<int64_t>::max());
  pair.receiver->Skip(std::numeric_limits<int64_t>::max());
  pair.sender->Send(Message(100, 1));
  EXPECT_THAT(pair.receiver->Drop(), IsOk());
  EXPECT_TRUE(pair.receiver->dropping());
}

TEST(PayloadStreamTest, TheEndIsTheReceiversToNotice) {
  Pair pair;
  const std::vector<std::byte> message = Message(100, 1);
  pair.sender->Send(message);
  pair.sender = nullptr;
  EXPECT_THAT(Next(*pair.receiver, 100), Optional(message));
  EXPECT_THAT(pair.receiver->Next(1), StatusIs(absl::StatusCode::kUnavailable));
  Pair other;
  other.receiver = nullptr;
  other.sender->Send(message);  // no SIGPIPE
  EXPECT_TRUE(other.sender->sent());
}

}  // namespace
}  // namespace weight_sync::refit
