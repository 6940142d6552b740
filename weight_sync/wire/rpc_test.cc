// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Between threads of this process, and between processes: this binary run again as a server or as a
// client.

#include "weight_sync/wire/rpc.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::wire {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::weight_sync::fakes::ChildProcess;

constexpr absl::Duration kLong = absl::Minutes(2);          // no call that succeeds comes near it
constexpr absl::Duration kShort = absl::Milliseconds(100);  // of calls that are to run out of time

base::Deadline Long() { return base::Deadline::After(kLong); }

// Does what a request's method says.
class TestService : public RpcService {
 public:
  ~TestService() override {
    for (std::thread& thread : threads_) thread.join();
  }

  void Handle(RpcRequest request, RpcResponder responder) override {
    absl::MutexLock lock(&mutex_);
    ++handled_;
    if (request.method == "say") {
      return responder.Reply(RpcReply{std::move(request.body), std::move(request.attachment)});
    }
    if (request.method == "fail") {  // body: the code; attachment: the text
      return responder.Reply(
          absl::Status(static_cast<absl::StatusCode>(request.body[0]), request.attachment));
    }
    if (request.method == "drop") return;
    if (request.method == "replace") {  // drops the one, then the other
      RpcResponder other;
      other = std::move(responder);
      other = RpcResponder();
      return;
    }
    if (request.method == "thread") {
      threads_.emplace_back([responder = std::move(responder)]() mutable {
        responder.Reply(RpcReply{"from another thread", ""});
      });
      return;
    }
    if (request.method == "hold") return held_.push_back(std::move(responder));
    if (request.method == "release") {
      for (RpcResponder& held : std::exchange(held_, {})) held.Reply(RpcReply{"late", ""});
      return responder.Reply(RpcReply{"released", ""});
    }
    if (request.method == "pid") return responder.Reply(RpcReply{absl::StrCat(request.peer), ""});
    if (request.method == "die") ::raise(SIGKILL);
    if (request.method == "stop") {
      ::raise(SIGSTOP);
      return responder.Reply(RpcReply{"continued", ""});
    }
    responder.Reply(absl::InternalError("this is no method of the test"));
  }

  void PeerGone(const absl::Status& why) override {
    absl::MutexLock lock(&mutex_);
    gone_.push_back(why);
  }

  int handled() const {
    absl::MutexLock lock(&mutex_);
    return handled_;
  }
  void AwaitHeld() {
    const auto held = [this] { return !held_.empty(); };
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&held), kLong));
  }
  std::vector<RpcResponder> TakeHeld() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(held_, {});
  }
  // What PeerGone was told so far, once that is `count` times.
  std::vector<absl::Status> AwaitGone(size_t count) {
    const auto enough = [this, count] { return gone_.size() >= count; };
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), kLong));
    return gone_;
  }
  std::vector<absl::Status> gone() const {
    absl::MutexLock lock(&mutex_);
    return gone_;
  }

 private:
  mutable absl::Mutex mutex_;
  int handled_ = 0;
  std::vector<RpcResponder> held_;
  std::vector<absl::Status> gone_;
  std::vector<std::thread> threads_;
};

absl::StatusOr<std::unique_ptr<RpcServer>> Serve(const std::string& path, RpcService* service) {
  auto claim = base::LocalEndpoint::Claim(path);
  if (!claim.ok()) return claim.status();
  return RpcServer::Start(*std::move(claim), {{"test.", service}});
}

constexpr char kServerRole[] = "--rpc-server";
constexpr char kClientRole[] = "--rpc-client";

// A child in either role gets the path and reports a status. A client stays connected until its
// input ends.
int RunServer() {
  TestService service;
  auto server = Serve(fakes::ChildConfig(), &service);
  fakes::ReportLine(server.status().ToString());
  fakes::WaitForParent();
  return 0;
}

int RunClient() {
  const base::CancelScope scope(Long());
  auto client = RpcClient::Connect(fakes::ChildConfig(), "engine", scope);
  fakes::ReportLine(client.status().ToString());
  fakes::WaitForParent();
  return 0;
}

class RpcTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RpcClient>> Connect(absl::Duration timeout = kLong) {
    const base::CancelScope scope(base::Deadline::After(timeout));
    return RpcClient::Connect(endpoint_.endpoint(), "engine", scope);
  }
  static absl::StatusOr<RpcReply> Call(RpcClient& client, absl::string_view method,
                                       absl::string_view body = "",
                                       absl::string_view attachment = "",
                                       absl::Duration timeout = kLong) {
    const base::CancelScope scope(base::Deadline::After(timeout));
    return client.Call(absl::StrCat("test.", method), body, attachment, scope);
  }
  // What the child reported first.
  absl::StatusOr<std::pair<ChildProcess, std::string>> StartChild(const char* role) {
    auto child = ChildProcess::Start(role, endpoint_.endpoint());
    if (!child.ok()) return child.status();
    auto line = child->ReadLine(Long());
    if (!line.ok()) return line.status();
    return std::make_pair(*std::move(child), *line);
  }
  ChildProcess StartServer() {
    auto child = StartChild(kServerRole);
    ABSL_CHECK_OK(child);
    ABSL_CHECK_EQ(child->second, "OK");
    return std::move(child->first);
  }

  base::testing::SocketFolder endpoint_;
};

class RpcInOneProcessTest : public RpcTest {
 protected:
  void SetUp() override {
    auto server = Serve(endpoint_.endpoint(), &service_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    auto client = Connect();
    ASSERT_THAT(client, IsOk());
    client_ = *std::move(client);
  }

  TestService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcClient> client_;
};

TEST_F(RpcInOneProcessTest, BodyAndAttachmentCrossUnchanged) {
  const std::string binary("\0\xFF binary \n", 12);
  const std::string large(1 << 20, 'x');
  for (const std::string& body : {std::string(), binary, large}) {
    for (const std::string& attachment : {std::string(), binary, large}) {
      auto reply = Call(*client_, "say", body, attachment);
      ASSERT_THAT(reply, IsOk());
      EXPECT_EQ(reply->body, body);
      EXPECT_EQ(reply->attachment, attachment);
    }
  }
}

TEST_F(RpcInOneProcessTest, AServicesErrorCrossesWithCodeAndText) {
  for (char code = 1; code <= 16; ++code) {
    auto reply = Call(*client_, "fail", std::string(1, code), "layer 3 is \"broken\"");
    EXPECT_THAT(reply,
                StatusIs(static_cast<absl::StatusCode>(code), "engine: layer 3 is \"broken\""));
  }
}

TEST_F(RpcInOneProcessTest, AMethodThatNoServiceHasIsNamed) {
  const base::CancelScope scope(Long());
  EXPECT_THAT(client_->Call("other.say", "", "", scope),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("other.say")));
}

TEST_F(RpcInOneProcessTest, TheServiceLearnsWhoAsks) {
  auto reply = Call(*client_, "pid");
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, absl::StrCat(::getpid()));
  EXPECT_EQ(client_->peer().pid(), ::getpid());
}

TEST_F(RpcInOneProcessTest, AReplyMayComeFromAnotherThread) {
  for (int i = 0; i < 50; ++i) {
    auto reply = Call(*client_, "thread");
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(reply->body, "from another thread");
  }
}

TEST_F(RpcInOneProcessTest, ADroppedRequestAnswersInternal) {
  for (const char* method : {"drop", "replace"}) {
    EXPECT_THAT(Call(*client_, method),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("dropped")));
  }
}

TEST_F(RpcInOneProcessTest, AfterATimeoutTheSameClientWorksAndALateReplyIsNotTakenForTheNext) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(Call(*client_, "hold", "", "", kShort),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         AllOf(HasSubstr("engine at"), HasSubstr(endpoint_.endpoint()),
                               HasSubstr("test.hold"))));
    auto reply = Call(*client_, "release");  // the server sends "late" first
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(reply->body, "released");
  }
}

TEST_F(RpcInOneProcessTest, ACallEndsByCancellationWithItsCause) {
  base::CancelScope scope(Long());
  std::thread cancelling([&] {
    service_.AwaitHeld();
    scope.Cancel(absl::AbortedError("the synchronizer was shut down"));
  });
  EXPECT_THAT(client_->Call("test.hold", "", "", scope),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("shut down")));
  cancelling.join();
  EXPECT_THAT(Call(*client_, "say", "still works"), IsOk());
}

TEST_F(RpcInOneProcessTest, CallsOfManyThreadsGetTheirOwnReplies) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string body = absl::StrCat(t, "/", i);
        auto reply = Call(*client_, "say", body);
        ASSERT_THAT(reply, IsOk());
        EXPECT_EQ(reply->body, body);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RpcInOneProcessTest, TheClientHasLeftWhenItsLastConnectionHas) {
  auto second = Connect();
  ASSERT_THAT(second, IsOk());
  client_.reset();
  EXPECT_THAT(Call(**second, "say"), IsOk());
  EXPECT_TRUE(service_.gone().empty());
  second->reset();
  EXPECT_THAT(service_.AwaitGone(1), ::testing::ElementsAre(absl::OkStatus()));
}

TEST_F(RpcInOneProcessTest, AReplyAfterTheServersEndIsHarmless) {
  EXPECT_THAT(Call(*client_, "hold", "", "", kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  server_.reset();
  for (RpcResponder& responder : service_.TakeHeld()) responder.Reply(RpcReply{"too late", ""});
  EXPECT_TRUE(service_.gone().empty());
}

TEST_F(RpcInOneProcessTest, ASuccessorOfTheServerInTheSameProcessIsAnotherPeer) {
  server_.reset();
  TestService successor_service;
  auto successor = Serve(endpoint_.endpoint(), &successor_service);
  ASSERT_THAT(successor, IsOk());
  EXPECT_THAT(Call(*client_, "say"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(endpoint_.endpoint())));
  EXPECT_FALSE(client_->connected());
  EXPECT_THAT(Call(*client_, "say"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(successor_service.handled(), 0) << "it must not act on its predecessor's requests";
  auto anew = Connect();
  ASSERT_THAT(anew, IsOk());
  EXPECT_THAT(Call(**anew, "say"), IsOk());
  // The old client is no connection of the successor, so it is not waited for.
  anew->reset();
  EXPECT_THAT(successor_service.AwaitGone(1), ::testing::ElementsAre(absl::OkStatus()));
}

TEST_F(RpcTest, ConnectWithoutAServerIsUnavailableAndNamesThePath) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(Connect(kShort), StatusIs(absl::StatusCode::kUnavailable,
                                        AllOf(HasSubstr("engine"), HasSubstr(endpoint_.endpoint()),
                                              HasSubstr("there is no such socket"))));
  // Also that the end of a client whose message was never sent waits for nothing.
  EXPECT_LT(absl::Now() - start, kLong / 4);
}

TEST_F(RpcTest, ConnectToTheSocketFileOfADeadServerIsUnavailable) {
  ChildProcess server = StartServer();
  server.Kill(SIGKILL);
  ASSERT_THAT(server.Wait(Long()), IsOk());
  ASSERT_EQ(::access(endpoint_.endpoint().c_str(), F_OK), 0);
  EXPECT_THAT(Connect(kShort),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(endpoint_.endpoint()),
                             ::testing::Not(HasSubstr("there is no such socket")))));
}

TEST_F(RpcTest, ConnectEndsByCancellationWithItsCause) {
  base::CancelScope scope(Long());
  std::thread cancelling([&] { scope.Cancel(absl::AbortedError("the trainer stops")); });
  EXPECT_THAT(RpcClient::Connect(endpoint_.endpoint(), "engine", scope),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("the trainer stops")));
  cancelling.join();
}

TEST_F(RpcTest, ConnectRefusesAPathThatIsNoSocketAddress) {
  const base::CancelScope scope(Long());
  EXPECT_THAT(RpcClient::Connect("e.sock", "engine", scope),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'e.sock'")));
}

TEST_F(RpcTest, ConnectWaitsForAServerThatComesLater) {
  TestService service;
  absl::StatusOr<std::unique_ptr<RpcServer>> server;
  std::thread serving([&] { server = Serve(endpoint_.endpoint(), &service); });
  EXPECT_THAT(Connect(), IsOk());
  serving.join();
  ASSERT_THAT(server, IsOk());
}

TEST_F(RpcTest, AKilledServerEndsACallAtOnce) {
  ChildProcess server = StartServer();
  auto client = Connect();
  ASSERT_THAT(client, IsOk());
  const absl::Time start = absl::Now();
  EXPECT_THAT(Call(**client, "die"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("engine"), HasSubstr(absl::StrCat("pid ", server.pid())))));
  EXPECT_FALSE((*client)->connected());
  EXPECT_THAT(Call(**client, "say"), StatusIs(absl::StatusCode::kUnavailable));
  client->reset();
  EXPECT_LT(absl::Now() - start, kLong / 4);
}

TEST_F(RpcTest, AStoppedServerEndsACallByItsDeadlineAndWorksWhenItGoesOn) {
  ChildProcess server = StartServer();
  auto client = Connect();
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT(Call(**client, "stop", "", "", kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("test.stop")));
  EXPECT_TRUE((*client)->connected());
  server.Kill(SIGCONT);
  auto reply = Call(**client, "say", "again");
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, "again");
}

TEST_F(RpcTest, AClientOfAStoppedServerEndsInBoundedTime) {
  ChildProcess server = StartServer();
  auto client = Connect();
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT(Call(**client, "stop", "", "", kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const absl::Time start = absl::Now();
  client->reset();
  EXPECT_LT(absl::Now() - start, kLong / 4);
  server.Kill(SIGKILL);
}

TEST_F(RpcTest, ARestartedServerIsLostToTheOldClientAndFoundByANewOne) {
  ChildProcess first = StartServer();
  auto old_client = Connect();
  ASSERT_THAT(old_client, IsOk());
  first.Kill(SIGKILL);
  ASSERT_THAT(first.Wait(Long()), IsOk());
  ChildProcess second = StartServer();
  EXPECT_THAT(Call(**old_client, "say"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE((*old_client)->connected());
  auto new_client = Connect();
  ASSERT_THAT(new_client, IsOk());
  EXPECT_EQ((*new_client)->peer().pid(), second.pid());
  EXPECT_THAT(Call(**new_client, "say"), IsOk());
}

TEST_F(RpcTest, ASecondServerOnTheEndpointIsRefused) {
  ChildProcess first = StartServer();
  auto second = StartChild(kServerRole);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->second, AllOf(HasSubstr("FAILED_PRECONDITION"),
                                    HasSubstr(absl::StrCat("living process ", first.pid()))));
  auto client = Connect();
  ASSERT_THAT(client, IsOk());
  EXPECT_EQ((*client)->peer().pid(), first.pid());
}

// How the client process that holds an endpoint ends.
class HolderTest : public RpcTest, public ::testing::WithParamInterface<bool> {};

TEST_P(HolderTest, OthersAreRefusedByNameUntilItHasLeftOrDied) {
  const bool killed = GetParam();
  TestService service;
  auto server = Serve(endpoint_.endpoint(), &service);
  ASSERT_THAT(server, IsOk());
  auto holder = StartChild(kClientRole);
  ASSERT_THAT(holder, IsOk());
  ASSERT_EQ(holder->second, "OK");
  const auto refused = AllOf(HasSubstr(endpoint_.endpoint()),
                             HasSubstr(absl::StrCat("trainer (pid ", holder->first.pid(), ")")));
  auto second = StartChild(kClientRole);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->second, AllOf(HasSubstr("FAILED_PRECONDITION"), refused,
                                    HasSubstr(absl::StrCat(second->first.pid()))));
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kFailedPrecondition, refused));
  EXPECT_TRUE(service.gone().empty()) << "who was refused was never there";

  if (killed) {
    holder->first.Kill(SIGKILL);
  } else {
    holder->first.CloseInput();
  }
  ASSERT_THAT(holder->first.Wait(Long()), IsOk());
  auto third = StartChild(kClientRole);
  ASSERT_THAT(third, IsOk());
  EXPECT_EQ(third->second, "OK");
  EXPECT_THAT(service.AwaitGone(1),
              ::testing::ElementsAre(
                  StatusIs(killed ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk)));
}

TEST_P(HolderTest, ItsEndIsTold) {
  const bool killed = GetParam();
  TestService service;
  auto server = Serve(endpoint_.endpoint(), &service);
  ASSERT_THAT(server, IsOk());
  auto holder = StartChild(kClientRole);
  ASSERT_THAT(holder, IsOk());
  const pid_t pid = holder->first.pid();
  if (killed) {
    holder->first.Kill(SIGKILL);
  } else {
    holder->first.CloseInput();
  }
  const absl::Status why = service.AwaitGone(1)[0];
  EXPECT_EQ(why.ok(), !killed);
  if (killed) {
    EXPECT_THAT(why, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr(absl::StrCat("trainer (pid ", pid, ")"))));
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, HolderTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Killed" : "Leaving"; });

}  // namespace

int RpcTestMain(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string(kServerRole)) return RunServer();
  if (argc == 2 && argv[1] == std::string(kClientRole)) return RunClient();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace weight_sync::wire

int main(int argc, char** argv) { return weight_sync::wire::RpcTestMain(argc, argv); }
