// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Endpoints between real processes: too long, owned, left behind, shared by jobs, and wanted by
// three trainers at once. Those of other users are in other_user_test.cc.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "base/local_endpoint.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/factory.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using EndpointsTest = ProcessTest;

TEST_F(EndpointsTest, APathThatDoesNotFitASocketAddressIsRefusedAtBothEnds) {
  for (const size_t length : {size_t{60}, size_t{100}, size_t{107}, size_t{108}, size_t{200}}) {
    std::string path = absl::StrCat(directory(), "/");
    path.append(length - path.size(), 'x');
    const auto engine = EngineProcess::Start({path, SmallTensors(1)});
    SynchronizerOptions options = SmallRing(path);
    auto policy = SeededPolicy::Create(SmallTensors(1), 7);
    native::NativeGeneration generation(path);
    const auto synchronizer = CreateWeightSynchronizer(options, policy->get(), &generation);
    if (length <= 107) {
      EXPECT_THAT(engine, IsOk()) << length;
      EXPECT_THAT(synchronizer, IsOk()) << length;
      EXPECT_THAT((*synchronizer)->InitCommunicator(), IsOk()) << length;
    } else {
      const auto text =
          HasSubstr(absl::StrCat("endpoint path of ", length, " bytes is longer than the 107"));
      EXPECT_THAT(engine, StatusIs(absl::StatusCode::kUnavailable, text));
      EXPECT_THAT(synchronizer, StatusIs(absl::StatusCode::kInvalidArgument, text));
    }
  }
}

TEST_F(EndpointsTest, ASecondEngineOnALivingOnesEndpointIsRefusedAndTheFirstServesOn) {
  StartEngine(SmallTensors(4));
  auto trainer = StartTrainer(SmallTensors(4));
  ExpectWholeSync(*trainer);
  EXPECT_THAT(
      EngineProcess::Start({Endpoint(), SmallTensors(4)}),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(absl::StrCat("is owned by living process ", engine_->process().pid()))));
  EXPECT_EQ(trainer->Ask()->version, 0);
  trainer->Step();
  ExpectWholeSync(*trainer);
}

TEST_F(EndpointsTest, WhatASignalledEngineLeftIsReplaced) {
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    StartEngine(SmallTensors(4));
    engine_->process().Kill(signal);
    EXPECT_EQ(ReapEngine(), absl::StrCat("killed by signal ", signal));
    struct stat info;
    EXPECT_EQ(::stat(Endpoint().c_str(), &info), 0) << "the test expects a stale socket";
    StartEngine(SmallTensors(4));
    auto trainer = StartTrainer(SmallTensors(4));
    ExpectWholeSync(*trainer);
    trainer.reset();
    engine_.reset();
  }
}

TEST_F(EndpointsTest, ARegularFileInItsPlaceIsNotDeleted) {
  std::ofstream(Endpoint()) << "somebody's notes";
  EXPECT_THAT(EngineProcess::Start({Endpoint(), SmallTensors(1)}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("exists and is not a socket; it is left as it is")));
  std::string text;
  std::getline(std::ifstream(Endpoint()), text);
  EXPECT_EQ(text, "somebody's notes");
  EXPECT_TRUE(std::filesystem::remove(Endpoint()));
}

TEST_F(EndpointsTest, ADirectoryThatOthersMayEnterIsRefused) {
  ASSERT_EQ(::chmod(directory().c_str(), 0755), 0);
  EXPECT_THAT(EngineProcess::Start({Endpoint(), SmallTensors(1)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("with mode 755")));
}

TEST_F(EndpointsTest, TwoJobsWithTheSameRanksSeeOnlyTheirOwnData) {
  // Names far longer than a path, which differ only at their ends; the directory's makes them this
  // test's own.
  const std::string job = directory() + std::string(300, 'n');
  const std::string rank(300, 'r');
  std::vector<std::string> paths;
  for (const auto& [name, role] :
       {std::make_pair(job + "a", rank + "0"), std::make_pair(job + "b", rank + "0"),
        std::make_pair(job + "a", rank + "1")}) {
    paths.push_back(base::DefaultEndpointPath(name, role));
  }
  {
    std::vector<EngineProcess> engines;
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (size_t i = 0; i < paths.size(); ++i) {
      auto engine = EngineProcess::Start({paths[i], SmallTensors(8)});
      ASSERT_THAT(engine, IsOk());
      engines.push_back(*std::move(engine));
      trainers.push_back(std::make_unique<Trainer>(
          TrainerOptions{SmallTensors(8), SmallRing(paths[i]), {}, /*seed=*/i}));
      ASSERT_THAT(trainers.back()->synchronizer().InitCommunicator(), IsOk());
    }
    for (int step = 0; step < 3; ++step) {
      for (auto& trainer : trainers) ExpectWholeSync(*trainer);
      for (auto& trainer : trainers) {
        EXPECT_EQ(trainer->Ask()->weights, AnswerDigest(trainer->policy().parameters()));
        trainer->Step();
      }
    }
  }
  for (const std::string& path : paths) {
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_FALSE(std::filesystem::exists(absl::StrCat(path, ".lock")));
  }
}

TEST_F(EndpointsTest, OfThreeTrainersOnOneEndpointTheFirstIsServedAndTheOthersAreRefusedByName) {
  StartEngine(SmallTensors(8));
  auto first = StartTrainerProcess({Endpoint(), SmallTensors(8)});
  ASSERT_THAT(first, IsOk());
  RememberChild(first->pid());
  const base::Deadline deadline = base::Deadline::After(kLongTimeout);
  ASSERT_THAT(first->ReadLine(deadline), IsOkAndHolds("connected"));
  ASSERT_THAT(first->ReadLine(deadline), IsOkAndHolds("synced 0"));

  const auto serves = [&](pid_t refused) {
    return HasSubstr(
        absl::StrCat("serves trainer (pid ", first->pid(), "), not process ", refused));
  };
  auto second = StartTrainerProcess({Endpoint(), SmallTensors(8)});
  ASSERT_THAT(second, IsOk());
  RememberChild(second->pid());
  EXPECT_THAT(second->ReadLine(deadline),
              IsOkAndHolds(AllOf(HasSubstr("error: FAILED_PRECONDITION"), serves(second->pid()))));
  Trainer third({SmallTensors(8), SmallRing(Endpoint()), {}, /*seed=*/9});
  EXPECT_THAT(third.synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kFailedPrecondition, serves(::getpid())));

  first->CloseInput();
  EXPECT_THAT(first->Wait(deadline), IsOkAndHolds(0));
  ASSERT_THAT(third.synchronizer().InitCommunicator(), IsOk());
  EXPECT_EQ(third.Ask()->version, 0);  // the first one's
  ExpectWholeSync(third);
}

}  // namespace
}  // namespace weight_sync::fakes
