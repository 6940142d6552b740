// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/peers/stock_server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/peer_process.h"
#include "base/testing/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::peers {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerCommand SmallServer(std::vector<std::string> kinds = {}) {
  ServerCommand command;
  command.words = {"/usr/bin/python3", std::filesystem::absolute("tools/peers/small_server.py"),
                   "{port}"};
  command.words.insert(command.words.end(), kinds.begin(), kinds.end());
  command.environment = {"PATH=/usr/bin:/bin", "GIVEN=1"};
  command.start_timeout = absl::Minutes(1);
  command.stop_timeout = absl::Seconds(20);
  return command;
}

// What there is of a server, and whether it is still there.
struct Traces {
  pid_t pid, child;
  std::string segment, semaphore, directory;

  explicit Traces(const StockServer& server) : directory(server.directory()) {
    const nlohmann::json json = server.Get("/json").value();
    pid = json.at("pid");
    child = json.at("child");
    segment = json.at("files").at(0);
    semaphore = json.at("files").at(1);
  }
  Traces() = default;

  std::vector<bool> Present() const {
    return {::kill(pid, 0) == 0, ::kill(child, 0) == 0, std::filesystem::exists(segment),
            std::filesystem::exists(semaphore), std::filesystem::exists(directory)};
  }
};

TEST(StockServerTest, ServesAndLeavesNothing) {
  auto server = StockServer::Start(SmallServer());
  ASSERT_THAT(server, IsOk());
  const Traces traces(**server);
  EXPECT_THAT(traces.Present(), Each(true));
  EXPECT_THAT((*server)->Generate({1, 7}, 3), IsOkAndHolds(ElementsAre(8, 9, 10)));
  EXPECT_THAT((*server)->Stop(), IsOk());
  EXPECT_THAT(traces.Present(), Each(false));
  EXPECT_THAT((*server)->Stop(), IsOk());
  EXPECT_THAT((*server)->Get("/json"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(StockServerTest, ItGetsTheGivenEnvironmentAndItsOwnFolder) {
  auto server = StockServer::Start(SmallServer());
  ASSERT_THAT(server, IsOk());
  const nlohmann::json answer = (*server)->Get("/environment").value();
  const std::string& directory = (*server)->directory();
  EXPECT_EQ(answer.at("folder"), directory);
  EXPECT_EQ(answer.at("variables").at("HOME"), directory);
  EXPECT_EQ(answer.at("variables").at("TMPDIR"), directory);
  EXPECT_EQ(answer.at("variables").at("GIVEN"), "1");
  EXPECT_FALSE(answer.at("variables").contains("TEST_TMPDIR"));
}

TEST(StockServerTest, AnswersThatAreNotWhatWasAskedForAreErrors) {
  auto server = StockServer::Start(SmallServer());
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT((*server)->Get("/nowhere"),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("/nowhere"), HasSubstr("404"), HasSubstr("no such route"))));
  EXPECT_THAT((*server)->Get("/text"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no JSON: words")));
  EXPECT_THAT((*server)->Generate({1}, 9),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("asked for 9 tokens")));
}

TEST(StockServerTest, OneThatDiesWhileItStartsIsReportedAtOnceWithItsWords) {
  ServerCommand command = SmallServer({"dies"});
  command.start_timeout = absl::Hours(1);
  EXPECT_THAT(StockServer::Start(command),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("exited with 1"), HasSubstr("no such model"))));
}

TEST(StockServerTest, OneThatIsNeverHealthyIsStoppedAtTheDeadline) {
  ServerCommand command = SmallServer({"starting"});
  command.start_timeout = absl::Seconds(3);
  EXPECT_THAT(StockServer::Start(command),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("no end within 3s")));
}

TEST(StockServerTest, OneThatEndsByItselfIsReportedAndLeavesNothing) {
  ServerCommand command = SmallServer();
  command.stop_timeout = absl::Seconds(1);
  auto server = StockServer::Start(command);
  ASSERT_THAT(server, IsOk());
  const Traces traces(**server);
  EXPECT_THAT((*server)->Get("/exit").status(), testing::Not(IsOk()));
  const auto supervisor = base::PeerProcess::Watch((*server)->pid(), "supervisor");
  ASSERT_THAT(supervisor, IsOk());
  pollfd wait{supervisor->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  EXPECT_THAT((*server)->Stop(), StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("ended by itself (exited with 7)")));
  EXPECT_THAT(traces.Present(), Each(false));
}

TEST(StockServerTest, OneThatDoesNotEndIsKilledAndThatIsAnError) {
  ServerCommand command = SmallServer({"stubborn"});
  command.stop_timeout = absl::Seconds(1);
  auto server = StockServer::Start(command);
  ASSERT_THAT(server, IsOk());
  const Traces traces(**server);
  EXPECT_THAT((*server)->Stop(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("needed a SIGKILL")));
  EXPECT_THAT(traces.Present(), Each(false));
}

TEST(StockServerTest, SoIsAProcessThatItLeaves) {
  ServerCommand command = SmallServer({"forgetful"});
  command.stop_timeout = absl::Seconds(1);
  auto server = StockServer::Start(command);
  ASSERT_THAT(server, IsOk());
  const Traces traces(**server);
  EXPECT_THAT((*server)->Stop(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("exited with 0; it or a descendant needed a SIGKILL")));
  EXPECT_THAT(traces.Present(), Each(false));
}

TEST(StockServerTest, AProgramThatIsNotThereIsNamed) {
  ServerCommand command;
  command.words = {"/nowhere/bin/python"};
  EXPECT_THAT(StockServer::Start(command),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("could not start /nowhere/bin/python: No such file")));
}

// Two ways in which a test ends without its destructors.
class StockServerDeathTest : public testing::TestWithParam<int> {};

TEST_P(StockServerDeathTest, ItDiesWithTheTestAndLeavesNothing) {
  base::testing::ChildProcess test([](base::testing::ChildProcess::Side& side) {
    ServerCommand command = SmallServer({"stubborn"});
    command.stop_timeout = absl::Hours(1);  // which is not waited for
    auto server = StockServer::Start(command);
    ASSERT_THAT(server, IsOk());
    const Traces traces(**server);
    side.Say(absl::StrCat((*server)->pid(), ",", traces.pid, ",", traces.child, ",", traces.segment,
                          ",", traces.semaphore, ",", traces.directory));
    side.WaitForRelease();
  });
  const std::vector<std::string> said = absl::StrSplit(test.Hear(), ',');
  ASSERT_EQ(said.size(), 6);
  Traces traces;
  traces.pid = std::stoi(said[1]);
  traces.child = std::stoi(said[2]);
  traces.segment = said[3];
  traces.semaphore = said[4];
  traces.directory = said[5];
  EXPECT_THAT(traces.Present(), Each(true));
  const auto supervisor = base::PeerProcess::Watch(std::stoi(said[0]), "supervisor");
  ASSERT_THAT(supervisor, IsOk());
  ASSERT_EQ(::kill(test.pid(), GetParam()), 0);
  pollfd wait{supervisor->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 60'000), 1);
  EXPECT_THAT(traces.Present(), Each(false));
}

INSTANTIATE_TEST_SUITE_P(Signals, StockServerDeathTest, testing::Values(SIGKILL, SIGTERM));

}  // namespace
}  // namespace weight_sync::peers
