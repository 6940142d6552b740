// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Fifty syncs of one model: memory, file descriptors, mappings and shared memory of trainer and
// engine process are flat after the third.

#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "fakes/process_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizer = true;  // keeps freed memory and maps shadow memory as it pleases
#else
constexpr bool kSanitizer = false;
#endif

struct Usage {
  explicit Usage(pid_t pid)
      : fds(OpenFds(pid)),
        rings(RingMappings(pid)),
        mappings(Mappings(pid)),
        resident(ResidentBytes(pid)) {}
  int fds;
  int rings;
  int mappings;
  int64_t resident;
};

using SteadyStateTest = ProcessTest;

TEST_F(SteadyStateTest, FiftySyncsOfAnUnchangedModelLeaveNothing) {
  // 64 buckets of 64 KiB: one of them kept at each sync would be seen.
  std::vector<refit::TensorSpec> tensors;
  for (int i = 0; i < 64; ++i) {
    tensors.push_back({absl::StrCat("layers.", i, ".weight"), {128, 256}, refit::DType::kBF16});
  }
  const refit::RefitInfo info = *refit::RefitInfo::Create(tensors);
  StartEngine(info);
  SynchronizerOptions options = SmallRing(Endpoint());
  options.ring_slot_bytes = 64 << 10;
  Trainer trainer({info, options});
  ASSERT_THAT(trainer.synchronizer().InitCommunicator(), IsOk());

  const std::vector<pid_t> processes = {::getpid(), engine_->process().pid()};
  std::vector<Usage> third;
  for (int sync = 1; sync <= 50; ++sync) {
    const auto report = trainer.synchronizer().SyncWeights();
    ASSERT_THAT(report, IsOk());
    ASSERT_EQ(report->verification, Verification::kEqual);
    for (const pid_t pid : processes) EXPECT_TRUE(LeftNoSharedMemory(pid));
    trainer.synchronizer().MarkStale();
    if (sync == 3) {
      for (const pid_t pid : processes) third.emplace_back(pid);
    }
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    const Usage last(processes[i]);
    SCOPED_TRACE(i == 0 ? "trainer" : "engine");
    // What is just being closed may still be seen.
    EXPECT_TRUE(WaitUntil([&] { return OpenFds(processes[i]) <= third[i].fds; }))
        << last.fds << " open, " << third[i].fds << " after the third sync";
    EXPECT_EQ(last.rings, third[i].rings);
    if (kSanitizer) continue;
    // The allocator may map an arena or a thread's stack for a new thread that it meets.
    EXPECT_LE(last.mappings, third[i].mappings + 4);
    EXPECT_LE(last.resident, third[i].resident + (1 << 20));
  }
}

TEST_F(SteadyStateTest, TwentyConnectionsLeaveNothing) {
  StartEngine(SmallTensors(8));
  const pid_t engine = engine_->process().pid();
  int fds = 0, engine_fds = 0;
  for (int i = 1; i <= 20; ++i) {
    auto trainer = StartTrainer(SmallTensors(8));
    ASSERT_THAT(trainer->synchronizer().SyncWeights(), IsOk());
    trainer.reset();
    EXPECT_TRUE(WaitUntil([&] { return RingMappings(engine) == 0; }));
    EXPECT_EQ(RingMappings(::getpid()), 0);
    if (i == 3) {
      fds = OpenFds(::getpid());
      engine_fds = OpenFds(engine);
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return OpenFds(::getpid()) <= fds; })) << OpenFds(::getpid());
  EXPECT_TRUE(WaitUntil([&] { return OpenFds(engine) <= engine_fds; })) << OpenFds(engine);
}

}  // namespace
}  // namespace weight_sync::fakes
