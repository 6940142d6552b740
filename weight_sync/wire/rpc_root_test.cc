// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Two users on one endpoint, whose directory was opened to let them try. Runs as root.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/log/absl_check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/socket_folder.h"
#include "fakes/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/wire/rpc.h"
#include "zmq.hpp"

namespace weight_sync::wire {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::weight_sync::fakes::ChildProcess;

constexpr uid_t kNobody = 65534;
constexpr char kServerRole[] = "--server-of-another-user";
constexpr char kClientRole[] = "--client-of-another-user";

base::Deadline Long() { return base::Deadline::After(absl::Minutes(2)); }

class NeverAsked : public RpcService {
 public:
  void Handle(RpcRequest, RpcResponder) override { ADD_FAILURE() << "a stranger's request"; }
  void PeerGone(const absl::Status&) override { ADD_FAILURE() << "a stranger was a client"; }
};

void BecomeNobody() { ABSL_CHECK(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0); }

int RunServer() {
  BecomeNobody();
  const std::string path = fakes::ChildConfig();
  NeverAsked service;
  auto claim = base::LocalEndpoint::Claim(path);
  ABSL_CHECK_OK(claim);
  auto server = RpcServer::Start(*std::move(claim), {{"test.", &service}});
  fakes::ReportLine(server.status().ToString());
  fakes::WaitForParent();
  return 0;
}

// Reports what the library's own client says, then what the server answers to a client that does
// not look whose server it is.
int RunClient() {
  BecomeNobody();
  const std::string path = fakes::ChildConfig();
  const base::CancelScope scope(Long());
  fakes::ReportLine(RpcClient::Connect(path, "engine", scope).status().ToString());

  zmq::context_t context(1);
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::rcvtimeo, 120'000);
  socket.connect(absl::StrCat("ipc://", path));
  const uint64_t id = 1;
  socket.send(zmq::buffer(&id, sizeof(id)), zmq::send_flags::sndmore);
  socket.send(zmq::str_buffer("test.say"), zmq::send_flags::sndmore);
  socket.send(zmq::message_t(), zmq::send_flags::sndmore);
  socket.send(zmq::message_t(), zmq::send_flags::none);
  std::string answer;
  zmq::message_t part;
  do {
    if (!socket.recv(part)) break;
    answer = absl::StrCat(answer, "|", part.to_string_view());
  } while (part.more());
  for (char& c : answer) c = c >= ' ' ? c : '.';
  fakes::ReportLine(answer);
  return 0;
}

class RpcRootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  base::testing::SocketFolder endpoint_;
};

TEST_F(RpcRootTest, AnotherUsersClientIsRefusedByTheServerAndRefusesItItself) {
  NeverAsked service;
  auto claim = base::LocalEndpoint::Claim(endpoint_.endpoint());
  ASSERT_THAT(claim, IsOk());
  auto server = RpcServer::Start(*std::move(claim), {{"test.", &service}});
  ASSERT_THAT(server, IsOk());
  ASSERT_EQ(::chmod(endpoint_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(endpoint_.endpoint().c_str(), 0777), 0);
  auto client = ChildProcess::Start(kClientRole, endpoint_.endpoint());
  ASSERT_THAT(client, IsOk());
  auto own = client->ReadLine(Long());
  ASSERT_THAT(own, IsOk());
  EXPECT_THAT(*own, AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("belongs to user 0")));
  auto answer = client->ReadLine(Long());
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(*answer, HasSubstr(absl::StrCat("belongs to user ", kNobody)));
}

TEST_F(RpcRootTest, AnotherUsersServerIsRefusedByTheClient) {
  ASSERT_EQ(::chown(endpoint_.path().c_str(), kNobody, kNobody), 0);
  auto server = ChildProcess::Start(kServerRole, endpoint_.endpoint());
  ASSERT_THAT(server, IsOk());
  auto ready = server->ReadLine(Long());
  ASSERT_THAT(ready, IsOk());
  ASSERT_EQ(*ready, "OK");
  const base::CancelScope scope(Long());
  EXPECT_THAT(RpcClient::Connect(endpoint_.endpoint(), "engine", scope),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(absl::StrCat("belongs to user ", kNobody))));
}

}  // namespace

int RpcRootTestMain(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string(kServerRole)) return RunServer();
  if (argc == 2 && argv[1] == std::string(kClientRole)) return RunClient();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace weight_sync::wire

int main(int argc, char** argv) { return weight_sync::wire::RpcRootTestMain(argc, argv); }
