// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// A /dev/shm of 1 MiB, as containers have small ones, in a mount namespace of its own. Runs as
// root, outside the sandbox.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>

#include "absl/log/check.h"
#include "absl/status/status_matchers.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kRole[] = "--with-small-shared-memory";

class SmallSharedMemoryTest : public ProcessTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small /dev/shm";
  }
};

TEST_F(SmallSharedMemoryTest, ARingThatDoesNotFitIsRefusedInNumbersAndASmallerOneWorks) {
  auto child = ChildProcess::Start(kRole, Endpoint());
  ASSERT_THAT(child, IsOk());
  const base::Deadline deadline = base::Deadline::After(kLongTimeout);
  // By an error, and not by a SIGBUS at the first write.
  EXPECT_THAT(child->ReadLine(deadline),
              IsOkAndHolds(AllOf(HasSubstr("RESOURCE_EXHAUSTED"),
                                 HasSubstr("ring_slots 4 x ring_slot_bytes 1048576"),
                                 HasSubstr("(1048576 bytes free)"))));
  EXPECT_THAT(child->ReadLine(deadline), IsOkAndHolds("nothing left"));
  EXPECT_THAT(child->ReadLine(deadline), IsOkAndHolds("OK"));
  EXPECT_THAT(child->ReadLine(deadline), IsOkAndHolds("OK"));
  EXPECT_THAT(child->ReadLine(deadline), IsOkAndHolds("nothing left"));
  EXPECT_THAT(child->Wait(deadline), IsOkAndHolds(0));
}

int RunWithSmallSharedMemory() {
  const std::string endpoint = ChildConfig();
  PCHECK(::unshare(CLONE_NEWNS) == 0);
  PCHECK(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  PCHECK(::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0);
  const auto report_left = [] {
    ReportLine(LeftNoSharedMemory(::getpid()) ? "nothing left" : "something left");
  };
  auto engine = EngineProcess::Start({endpoint, SmallTensors(8)});
  CHECK_OK(engine);
  SynchronizerOptions options = SmallRing(endpoint);
  options.ring_slot_bytes = 1 << 20;
  Trainer large({SmallTensors(8), options});
  ReportLine(large.synchronizer().InitCommunicator().ToString());
  report_left();
  options.ring_slot_bytes = 64 << 10;
  Trainer small({SmallTensors(8), options});
  ReportLine(small.synchronizer().InitCommunicator().ToString());
  ReportLine(small.synchronizer().SyncWeights().status().ToString());
  report_left();
  return 0;
}

}  // namespace
}  // namespace weight_sync::fakes

int main(int argc, char** argv) {
  using namespace weight_sync::fakes;
  if (argc == 2 && argv[1] == std::string(kRole)) return RunWithSmallSharedMemory();
  if (const std::optional<int> code = MaybeRunChild(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
