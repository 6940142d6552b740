// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Endpoints between two users of one machine. Runs as root, outside the sandbox.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "fakes/engine_host.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kOther = 65534;
constexpr char kOthersEngine[] = "--engine-of-another-user";
constexpr char kOthersTrainer[] = "--trainer-of-another-user";

base::Deadline Soon() { return base::Deadline::After(kLongTimeout); }

class OtherUserTest : public ProcessTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to be two users";
  }
};

TEST_F(OtherUserTest, ATrainerRefusesAnothersEngine) {
  ASSERT_EQ(::chown(directory().c_str(), kOther, kOther), 0);
  auto engine = ChildProcess::Start(kOthersEngine, Endpoint());
  ASSERT_THAT(engine, IsOk());
  ASSERT_THAT(engine->ReadLine(Soon()), IsOkAndHolds("ready"));
  Trainer trainer({SmallTensors(1), SmallRing(Endpoint())});
  EXPECT_THAT(trainer.synchronizer().InitCommunicator(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("belongs to user 65534"), HasSubstr("to 0"))));
}

TEST_F(OtherUserTest, AnEngineRefusesAnothersTrainerAndServesItsOwn) {
  StartEngine(SmallTensors(1));
  // What nobody should do: the endpoint opened to everybody.
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(Endpoint().c_str(), 0777), 0);
  auto other = ChildProcess::Start(kOthersTrainer, Endpoint());
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(other->ReadLine(Soon()),
              IsOkAndHolds(AllOf(HasSubstr("FAILED_PRECONDITION"),
                                 HasSubstr("belongs to user 0, this process to 65534"))));
  EXPECT_THAT(other->Wait(Soon()), IsOkAndHolds(0));
  auto trainer = StartTrainer(SmallTensors(1));
  ExpectWholeSync(*trainer);
}

TEST_F(OtherUserTest, AnEngineDoesNotListenInAnothersDirectory) {
  ASSERT_EQ(::chown(directory().c_str(), kOther, kOther), 0);
  EXPECT_THAT(EngineProcess::Start({Endpoint(), SmallTensors(1)}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("must be a directory of user 0 with mode 700; it is of user "
                                 "65534")));
}

TEST_F(OtherUserTest, AnEngineDoesNotListenInADirectoryForAll) {
  ASSERT_EQ(::chmod(directory().c_str(), 01777), 0);
  EXPECT_THAT(EngineProcess::Start({Endpoint(), SmallTensors(1)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("with mode 1777")));
}

TEST_F(OtherUserTest, AnothersFilesInItsPlaceAreRefusedAndLeft) {
  for (const std::string& name : {Endpoint(), absl::StrCat(Endpoint(), ".lock")}) {
    if (name == Endpoint()) {
      // A socket, as a killed engine of the other user leaves it.
      StartEngine(SmallTensors(1));
      engine_->process().Kill(SIGKILL);
      ReapEngine();
      ASSERT_TRUE(std::filesystem::remove(absl::StrCat(Endpoint(), ".lock")));
    } else {
      std::ofstream(name) << 1;
    }
    ASSERT_EQ(::chown(name.c_str(), kOther, kOther), 0);
    EXPECT_THAT(EngineProcess::Start({Endpoint(), SmallTensors(1)}),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("belongs to user 65534")))
        << name;
    EXPECT_TRUE(std::filesystem::remove(name)) << "somebody else's file was deleted";
  }
}

void BecomeOther() {
  PCHECK(::setresgid(kOther, kOther, kOther) == 0 && ::setresuid(kOther, kOther, kOther) == 0);
}

int RunOthersEngine() {
  const std::string endpoint = ChildConfig();
  BecomeOther();
  auto host = EngineHost::Start(endpoint, SmallTensors(1), {}, {});
  ReportLine(host.ok() ? "ready" : host.status().ToString());
  WaitForParent();
  return 0;
}

int RunOthersTrainer() {
  const std::string endpoint = ChildConfig();
  BecomeOther();
  Trainer trainer({SmallTensors(1), SmallRing(endpoint)});
  ReportLine(trainer.synchronizer().InitCommunicator().ToString());
  return 0;
}

}  // namespace
}  // namespace weight_sync::fakes

int main(int argc, char** argv) {
  using namespace weight_sync::fakes;
  const std::string role = argc == 2 ? argv[1] : "";
  if (role == kOthersEngine) return RunOthersEngine();
  if (role == kOthersTrainer) return RunOthersTrainer();
  if (const std::optional<int> code = MaybeRunChild(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
