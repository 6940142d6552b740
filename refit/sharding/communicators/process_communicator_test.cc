// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How ranks find one another, and what they refuse. Once they are together, the conformance suite
// tests them, and process_death_test.cc.

#include "refit/sharding/communicators/process_communicator.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/socket_file.h"
#include "base/testing/socket_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/sharding/communicators/frame_socket.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Result = absl::StatusOr<std::unique_ptr<Communicator>>;

constexpr absl::Duration kLong = absl::Minutes(2);
constexpr absl::Duration kShort = absl::Milliseconds(200);

// A place where ranks meet, of either kind.
class Place {
 public:
  virtual ~Place() = default;
  virtual Result Connect(const JobRank& me, const base::CancelScope& scope) = 0;
  // A connection that has said nothing, once rank 0 listens.
  virtual base::UniqueFd Dial() = 0;
  Result Connect(const JobRank& me, absl::Duration timeout = kLong) {
    return Connect(me, base::CancelScope(base::Deadline::After(timeout)));
  }
};

// The bytes of a socket address.
template <typename Address>
base::UniqueFd DialAddress(const Address& address, socklen_t length) {
  for (;;) {
    base::UniqueFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    PCHECK(fd.valid());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
    std::this_thread::yield();
  }
}

class HostPlace : public Place {
 public:
  using Place::Connect;
  Result Connect(const JobRank& me, const base::CancelScope& scope) override {
    return ConnectOnHost(me, folder.endpoint(), scope);
  }
  base::UniqueFd Dial() override {
    sockaddr_storage storage = {};
    auto* address = reinterpret_cast<sockaddr_un*>(&storage);
    address->sun_family = AF_UNIX;
    std::memcpy(address->sun_path, folder.endpoint().data(), folder.endpoint().size());
    return DialAddress(storage, sizeof(sockaddr_un));
  }
  base::testing::SocketFolder folder;
};

class TcpPlace : public Place {
 public:
  using Place::Connect;
  // Chooses the port, which is then free until rank 0 comes.
  TcpPlace() {
    auto host = TcpHost::Listen("127.0.0.1", 0);
    CHECK_OK(host.status());
    port = host->port();
  }
  Result Connect(const JobRank& me, const base::CancelScope& scope) override {
    if (me.rank != 0) return ConnectOverTcp(me, "127.0.0.1", port, scope);
    auto host = TcpHost::Listen("127.0.0.1", port);
    if (!host.ok()) return host.status();
    return (*std::move(host)).Connect(me, scope);
  }
  base::UniqueFd Dial() override {
    sockaddr_storage storage = {};
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(static_cast<uint16_t>(port));
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return DialAddress(storage, sizeof(sockaddr_in));
  }
  int port;
};

class MeetingTest : public ::testing::TestWithParam<bool> {
 protected:
  MeetingTest() {
    if (GetParam()) {
      place_ = std::make_unique<TcpPlace>();
    } else {
      place_ = std::make_unique<HostPlace>();
    }
  }
  std::unique_ptr<Place> place_;
};
INSTANTIATE_TEST_SUITE_P(All, MeetingTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "OverTcp" : "OnHost"; });

// Runs `body` beside the test.
class Beside {
 public:
  explicit Beside(std::function<Result()> body)
      : thread_([this, body = std::move(body)] { result_ = body(); }) {}
  ~Beside() {
    if (thread_.joinable()) thread_.join();
  }
  Result& Wait() {
    thread_.join();
    return result_;
  }

 private:
  Result result_ = absl::UnknownError("not yet");
  std::thread thread_;
};

// All of them do a round.
void ExpectRound(const std::vector<Result*>& ranks) {
  std::vector<std::thread> threads;
  for (Result* rank : ranks) {
    threads.emplace_back([rank] {
      ASSERT_THAT(*rank, IsOk());
      const base::CancelScope scope(base::Deadline::After(kLong));
      EXPECT_THAT((**rank)->BeginRound(1, absl::OkStatus(), scope), IsOk());
      EXPECT_THAT((**rank)->EndRound(absl::OkStatus(), scope), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(MeetingTest, Rank0MayComeBeforeOrAfterTheOthers) {
  Beside first([&] { return place_->Connect({"job", 1, 3}); });
  Beside root([&] { return place_->Connect({"job", 0, 3}); });
  Result last = place_->Connect({"job", 2, 3});
  ExpectRound({&root.Wait(), &first.Wait(), &last});
}

TEST_P(MeetingTest, OneRankAloneMeetsItself) {
  Result alone = place_->Connect({"job", 0, 1});
  ExpectRound({&alone});
}

TEST_P(MeetingTest, WithoutRank0TheOthersSayWhereTheyWaited) {
  EXPECT_THAT(place_->Connect({"job", 2, 3}, kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 2 of 3 of job 'job' waits for rank 0 at "),
                             HasSubstr("no end within 200ms"))));
}

TEST_P(MeetingTest, WhoIsMissingIsNamedOnAllRanks) {
  Beside first([&] { return place_->Connect({"job", 1, 4}); });
  Beside third([&] { return place_->Connect({"job", 3, 4}); });
  EXPECT_THAT(place_->Connect({"job", 0, 4}, absl::Seconds(2)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("for rank 2: no end")));
  for (Beside* rank : {&first, &third}) {
    EXPECT_THAT(rank->Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                       AllOf(HasSubstr("rank 0: "), HasSubstr("for rank 2"))));
  }
}

TEST_P(MeetingTest, ACancellationEndsTheWaitOfEitherEnd) {
  for (const int rank : {0, 1}) {
    base::CancelScope scope(base::Deadline::After(kLong));
    Beside waiting([&] { return place_->Connect({"job", rank, 2}, scope); });
    scope.Cancel(absl::AbortedError("the job ends"));
    EXPECT_THAT(waiting.Wait(), StatusIs(absl::StatusCode::kAborted, "the job ends"));
  }
}

TEST_P(MeetingTest, WhoDoesNotBelongIsRefusedByNameAndTheOthersMeet) {
  Beside root([&] { return place_->Connect({"job", 0, 3}); });
  EXPECT_THAT(place_->Connect({"another", 1, 3}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("rank 1 of 3 of job 'another' is refused"),
                             HasSubstr("where rank 0 of 3 of job 'job' is"))));
  EXPECT_THAT(place_->Connect({"job", 1, 2}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("rank 1 of a job of 2 ranks"), HasSubstr("of 3"))));
  EXPECT_THAT(place_->Connect({"job", 3, 4}), StatusIs(absl::StatusCode::kFailedPrecondition));
  Beside first([&] { return place_->Connect({"job", 1, 3}); });
  Result last = place_->Connect({"job", 2, 3});
  ExpectRound({&root.Wait(), &first.Wait(), &last});
}

// Raw hellos, as another version or a wrong program would send them.
Frame Hello(int64_t version, int64_t rank, int64_t size, const std::string& job = "job") {
  return {FrameKind::kHello, version, rank, size, job};
}

Frame Answer(FrameSocket& socket) {
  for (;;) {
    auto frame = socket.Receive();
    if (!frame.ok()) return {FrameKind::kRefused, 0, 0, 0, std::string(frame.status().message())};
    if (frame->has_value()) return **std::move(frame);
    std::this_thread::yield();
  }
}

TEST_P(MeetingTest, ASecondRankAndAnotherVersionAreRefusedByName) {
  Beside root([&] { return place_->Connect({"job", 0, 3}); });
  FrameSocket first(place_->Dial());
  first.Send(Hello(kCommunicatorProtocol, 1, 3));
  EXPECT_EQ(Answer(first).kind, FrameKind::kWelcome);
  EXPECT_THAT(place_->Connect({"job", 1, 3}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                       HasSubstr("a second rank 1 of job 'job'")));
  struct Case {
    Frame hello;
    const char* why;
  };
  for (const Case& c : {Case{Hello(99, 2, 3), "protocol version 99"},
                        Case{Hello(kCommunicatorProtocol, 0, 3), "rank 0 where"},
                        Case{Hello(kCommunicatorProtocol, -1, 3), "rank -1 where"},
                        Case{Hello(kCommunicatorProtocol, INT64_MAX, 3), "where"},
                        Case{Hello(kCommunicatorProtocol, 2, INT64_MAX), "of a job of"}}) {
    FrameSocket socket(place_->Dial());
    socket.Send(c.hello);
    const Frame answer = Answer(socket);
    EXPECT_EQ(answer.kind, FrameKind::kRefused);
    EXPECT_THAT(answer.text, HasSubstr(c.why));
  }
  // The first one leaves, and its place is free for one that stays.
  first.Close();
  Beside last([&] { return place_->Connect({"job", 2, 3}); });
  Result again = place_->Connect({"job", 1, 3});
  ExpectRound({&root.Wait(), &again, &last.Wait()});
}

TEST_P(MeetingTest, StrangersDoNotKeepTheRanksApart) {
  Beside root([&] { return place_->Connect({"job", 0, 2}); });
  std::vector<base::UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(place_->Dial());
    const char* request =
        "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: nothing in particular\r\n\r\n";
    if (i % 3 == 1) ::send(strangers.back().get(), request, std::strlen(request), MSG_NOSIGNAL);
    if (i % 3 == 2) strangers.back().reset();
  }
  Result other = place_->Connect({"job", 1, 2});
  ExpectRound({&root.Wait(), &other});
}

TEST_P(MeetingTest, AfterTheMeetingTheNextJobCanMeetThere) {
  for (int job = 0; job < 3; ++job) {
    Beside root([&] { return place_->Connect({absl::StrCat("job ", job), 0, 2}); });
    Result other = place_->Connect({absl::StrCat("job ", job), 1, 2});
    // While the first ones are still together.
    ExpectRound({&root.Wait(), &other});
  }
}

TEST_P(MeetingTest, ARankOfNoJobIsInvalid) {
  for (const JobRank& wrong : {JobRank{"", 0, 1}, JobRank{std::string(257, 'x'), 0, 1},
                               JobRank{"job", 2, 2}, JobRank{"job", -1, 2}, JobRank{"job", 0, 0}}) {
    EXPECT_THAT(place_->Connect(wrong, kShort),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("JobRank.")));
  }
}

// A rank that keeps to the protocol until it has come, and then does not.
TEST_P(MeetingTest, WhateverAPeerSendsEndsAsAnErrorOnAllRanks) {
  const std::vector<std::vector<Frame>> sent = {
      {{FrameKind::kMessage, 1, 1, -1}},
      {{FrameKind::kMessage, 1, 1, INT64_MAX}},
      {{FrameKind::kBegin, 1, 1}, {FrameKind::kMessage, 1, 5, INT64_MAX}},
      {{FrameKind::kBegin, 2, 1}},
      {{FrameKind::kBegin, INT64_MAX, 1}},
      {{FrameKind::kHello, 1, 1}},
      {{FrameKind::kLost, 1, 1, 3, "no"}},
      {{FrameKind::kSegment, 1, 1, -4096, "x"}},
      {{FrameKind::kSegment, 1, 1, INT64_MAX, "/weight_sync.0.nothing"}},
      {{FrameKind::kSegment, 1, 1, 8192, "/../etc/passwd"}},
      {{FrameKind::kBegin, 1, 1}, {FrameKind::kMessage, 1, 5, 4096}, {FrameKind::kCredit, 1}},
      {{FrameKind::kBegin, 1, 1}, {FrameKind::kWaiting, 1, 0, 0, "x"}},
  };
  for (size_t i = 0; i < sent.size(); ++i) {
    SCOPED_TRACE(i);
    Beside root([&] { return place_->Connect({"job", 0, 3}); });
    Beside other([&] { return place_->Connect({"job", 2, 3}); });
    FrameSocket bad(place_->Dial());
    bad.Send(Hello(kCommunicatorProtocol, 1, 3));
    EXPECT_EQ(Answer(bad).kind, FrameKind::kWelcome);
    std::optional<FrameSocket> its_messages;
    if (GetParam()) {
      const Frame secret = Answer(bad);
      ASSERT_EQ(secret.kind, FrameKind::kData);
      its_messages.emplace(place_->Dial());
      its_messages->Send({FrameKind::kData, 0, 1, secret.value});
    }
    ASSERT_EQ(Answer(bad).kind, FrameKind::kStart);
    for (const Frame& frame : sent[i]) bad.Send(frame);
    bad.Send({FrameKind::kEnd, 1, 1});
    std::vector<absl::Status> statuses(2);
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        Result& rank = (r == 0 ? root : other).Wait();
        ASSERT_THAT(rank, IsOk());
        const base::CancelScope scope(base::Deadline::After(kLong));
        absl::Status status = (*rank)->BeginRound(1, absl::OkStatus(), scope);
        if (status.ok()) {
          status = (*rank)->Gather(
              5, {0, 16, 0}, [](absl::Span<std::byte>) {},
              [](int, absl::Span<const std::byte>) { ADD_FAILURE() << "a message"; }, scope);
        }
        if (status.ok()) status = (*rank)->EndRound(absl::OkStatus(), scope);
        statuses[static_cast<size_t>(r)] = status;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) {
      EXPECT_FALSE(status.ok());
      EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_THAT(status.message(), HasSubstr("rank 1"));
    }
  }
}

TEST(ConnectOnHostTest, NothingIsLeftInTheFolderWhileTheRanksAreTogether) {
  HostPlace place;
  Beside root([&] { return place.Connect({"job", 0, 2}); });
  const Result other = place.Connect({"job", 1, 2});
  EXPECT_THAT(root.Wait(), IsOk());
  EXPECT_THAT(other, IsOk());
  EXPECT_TRUE(std::filesystem::is_empty(place.folder.path()));
}

TEST(ConnectOnHostTest, AnEndpointIsOneRank0s) {
  HostPlace place;
  base::CancelScope scope(base::Deadline::After(kLong));
  Beside root([&] { return place.Connect({"job", 0, 2}, scope); });
  place.Dial();  // it listens
  EXPECT_THAT(place.Connect({"job", 0, 2}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                     HasSubstr("is owned by living process")));
  scope.Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(root.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(std::filesystem::is_empty(place.folder.path()));
}

TEST(ConnectOnHostTest, AnEndpointThatIsNoneIsInvalid) {
  const base::CancelScope scope(base::Deadline::After(kShort));
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ConnectOnHost({"job", rank, 2}, "relative.sock", scope),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("relative.sock")));
  }
}

TEST(ConnectOnHostTest, WhatIsNoRank0IsNamed) {
  HostPlace place;
  const base::UniqueFd listener = base::testing::ListenAt(place.folder.endpoint());
  Beside rank([&] { return place.Connect({"job", 1, 2}); });
  const base::UniqueFd accepted(::accept(listener.get(), nullptr, nullptr));
  const std::string text(100, '?');
  ::send(accepted.get(), text.data(), text.size(), MSG_NOSIGNAL);
  EXPECT_THAT(rank.Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(place.folder.endpoint()), HasSubstr("is no rank 0"))));
}

TEST(ConnectOnHostTest, ARank0ThatLeavesWhileTheRanksComeTogetherIsUnavailable) {
  HostPlace place;
  const base::UniqueFd listener = base::testing::ListenAt(place.folder.endpoint());
  Beside rank([&] { return place.Connect({"job", 1, 3}); });
  {
    FrameSocket root(base::UniqueFd(::accept(listener.get(), nullptr, nullptr)));
    EXPECT_EQ(Answer(root).kind, FrameKind::kHello);
    root.Send({FrameKind::kWelcome, kCommunicatorProtocol, 0, 3, "job"});
  }
  EXPECT_THAT(rank.Wait(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 died at ")));
}

TEST(TcpHostTest, APortThatIsTakenIsNamed) {
  const auto host = TcpHost::Listen("127.0.0.1", 0);
  ASSERT_THAT(host, IsOk());
  EXPECT_GT(host->port(), 0);
  EXPECT_THAT(
      TcpHost::Listen("127.0.0.1", host->port()),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(absl::StrCat("127.0.0.1:", host->port())), HasSubstr("in use"))));
}

TEST(TcpHostTest, OnlyTheAddressThatWasAskedForListens) {
  auto host = TcpHost::Listen("127.0.0.1", 0);
  ASSERT_THAT(host, IsOk());
  const base::CancelScope scope(base::Deadline::After(kShort));
  EXPECT_THAT(ConnectOverTcp({"job", 1, 2}, "127.0.0.2", host->port(), scope),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("127.0.0.2:"), HasSubstr("Connection refused"))));
}

TEST(TcpHostTest, WhoDoesNotKnowARanksSecretIsNotTakenForIt) {
  TcpPlace place;
  base::CancelScope scope(base::Deadline::After(kLong));
  Beside root([&] { return place.Connect({"job", 0, 2}, scope); });
  FrameSocket rank(place.Dial());
  rank.Send(Hello(kCommunicatorProtocol, 1, 2));
  EXPECT_EQ(Answer(rank).kind, FrameKind::kWelcome);
  const Frame secret = Answer(rank);
  ASSERT_EQ(secret.kind, FrameKind::kData);
  for (const int64_t its_rank : {1, 0, 2}) {
    FrameSocket stranger(place.Dial());
    stranger.Send({FrameKind::kData, 0, its_rank, its_rank == 1 ? secret.value ^ 1 : secret.value});
    EXPECT_THAT(Answer(stranger).text, HasSubstr("closed"));
  }
  scope.Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(root.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(TcpHostTest, Ip6IsAsGood) {
  auto host = TcpHost::Listen("::1", 0);
  if (!host.ok()) GTEST_SKIP() << host.status();
  const int port = host->port();
  const base::CancelScope scope(base::Deadline::After(kLong));
  Beside root([&] { return (*std::move(host)).Connect({"job", 0, 2}, scope); });
  Result other = ConnectOverTcp({"job", 1, 2}, "::1", port, scope);
  ExpectRound({&root.Wait(), &other});
}

TEST(TcpHostTest, WhatIsNoHostOrNoPortIsInvalid) {
  const base::CancelScope scope(base::Deadline::After(kShort));
  EXPECT_THAT(TcpHost::Listen("", 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TcpHost::Listen("127.0.0.1", 65536), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TcpHost::Listen("127.0.0.1", -1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ConnectOverTcp({"job", 1, 2}, "127.0.0.1", 0, scope),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("port 0")));
  EXPECT_THAT(ConnectOverTcp({"job", 0, 2}, "127.0.0.1", 1, scope),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TcpHost")));
  EXPECT_THAT(TcpHost::Listen("no.such.host.invalid", 0),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no.such.host.invalid")));
}

}  // namespace
}  // namespace weight_sync::refit
