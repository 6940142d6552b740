// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/frame_socket.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::_;
using ::testing::Not;
using ::testing::Optional;

struct Pair {
  Pair() {
    int ends[2];
    PCHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    a = std::make_unique<FrameSocket>(base::UniqueFd(ends[0]));
    b = std::make_unique<FrameSocket>(base::UniqueFd(ends[1]));
  }
  // Past the frames, into the stream.
  void WriteRaw(const std::string& bytes) {
    PCHECK(::send(a->fd(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  std::unique_ptr<FrameSocket> a, b;
};

// What a frame is on the wire.
std::string Wire(const Frame& frame) {
  Pair pair;
  pair.a->Send(frame);
  std::string bytes(1 << 16, '\0');
  const ssize_t got = ::recv(pair.b->fd(), bytes.data(), bytes.size(), 0);
  PCHECK(got > 0);
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

testing::Matcher<const Frame&> Is(const Frame& frame) {
  return testing::AllOf(
      testing::Field(&Frame::kind, frame.kind), testing::Field(&Frame::round, frame.round),
      testing::Field(&Frame::tag, frame.tag), testing::Field(&Frame::value, frame.value),
      testing::Field(&Frame::text, frame.text));
}

TEST(FrameSocketTest, FramesArriveInOrderAndWhole) {
  Pair pair;
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Not(Optional(_))));
  const Frame first{FrameKind::kBegin, 1, -2, INT64_MIN};
  const Frame second{FrameKind::kSegment, 2, 3, INT64_MAX, std::string("name\0.", 6)};
  pair.a->Send(first);
  pair.a->Send(second);
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Optional(Is(first))));
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Optional(Is(second))));
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Not(Optional(_))));
}

TEST(FrameSocketTest, AFrameThatComesByteByByteIsOne) {
  const Frame frame{FrameKind::kFail, 5, 1, 13, "no more memory"};
  Pair pair;
  const std::string wire = Wire(frame);
  for (size_t i = 0; i < wire.size(); ++i) {
    EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Not(Optional(_)))) << i;
    pair.WriteRaw(wire.substr(i, 1));
  }
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Optional(Is(frame))));
}

TEST(FrameSocketTest, ALongTextIsCut) {
  Pair pair;
  pair.a->Send({FrameKind::kFail, 0, 0, 0, std::string(3 * kMaxText, 'x')});
  EXPECT_THAT(pair.b->Receive(),
              IsOkAndHolds(Optional(testing::Field(&Frame::text, std::string(kMaxText, 'x')))));
}

TEST(FrameSocketTest, WhatIsNoFrameIsDataLossAndEndsTheConnection) {
  const std::string good = Wire({FrameKind::kBegin});
  std::string no_magic = good, long_text = good, no_kind = good, high_kind = good;
  no_magic[0] ^= 1;
  long_text.replace(8, 4, "\xff\xff\xff\xff");
  no_kind[4] = 0;
  high_kind[4] = 99;
  for (const std::string& bad : {no_magic, long_text, no_kind, high_kind}) {
    Pair pair;
    pair.WriteRaw(bad);
    EXPECT_THAT(pair.b->Receive(), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(pair.b->Receive(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(pair.a->Receive(), StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST(FrameSocketTest, WhatTheSystemDoesNotTakeIsSentLater) {
  Pair pair;
  const Frame frame{FrameKind::kFail, 0, 0, 0, std::string(kMaxText, 'x')};
  int sent = 0;
  while (!pair.a->unsent()) {
    pair.a->Send(frame);
    ++sent;
  }
  for (int got = 0; got < sent; ++got) {
    EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Optional(Is(frame))));
    pair.a->Flush();
  }
  EXPECT_FALSE(pair.a->unsent());
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Not(Optional(_))));
}

TEST(FrameSocketTest, WhatWasSentBeforeTheEndIsReadFirst) {
  Pair pair;
  pair.a->Send({FrameKind::kEnd});
  pair.b->Send({FrameKind::kBegin});  // never read
  pair.a = nullptr;
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Optional(Is({FrameKind::kEnd}))));
  EXPECT_THAT(pair.b->Receive(), StatusIs(absl::StatusCode::kUnavailable));
  pair.b->Send({FrameKind::kBegin});  // no SIGPIPE
  EXPECT_FALSE(pair.b->unsent());
}

TEST(FrameSocketTest, APeerThatReadsNothingIsGivenUpBeforeMemoryIs) {
  Pair pair;
  const Frame frame{FrameKind::kFail, 0, 0, 0, std::string(kMaxText, 'x')};
  for (int i = 0; i < 2000; ++i) pair.a->Send(frame);
  EXPECT_FALSE(pair.a->unsent());
  EXPECT_THAT(pair.a->Receive(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(FrameSocketTest, AForkedChildsCopyLeavesTheConnectionAsItIs) {
  Pair pair;
  const pid_t child = ::fork();
  PCHECK(child >= 0);
  if (child == 0) {
    pair.a = nullptr;
    ::_exit(0);
  }
  PCHECK(::waitpid(child, nullptr, 0) == child);
  EXPECT_THAT(pair.b->Receive(), IsOkAndHolds(Not(Optional(_))));
}

TEST(FrameSocketTest, AStatusCrossesWithItsRank) {
  const absl::Status status = absl::ResourceExhaustedError("no more memory");
  EXPECT_EQ(StatusOf(StatusFrame(FrameKind::kFail, 1, 3, status)),
            absl::ResourceExhaustedError("rank 3: no more memory"));
  EXPECT_EQ(StatusOf(StatusFrame(FrameKind::kLost, 1, -1, status)), status);
  EXPECT_EQ(StatusOf({FrameKind::kFail, 1, -1, 0, "OK is no failure"}),
            absl::UnknownError("OK is no failure"));
  EXPECT_EQ(StatusOf({FrameKind::kFail, 1, -1, 1 << 20, "no code"}), absl::UnknownError("no code"));
}

}  // namespace
}  // namespace weight_sync::refit
