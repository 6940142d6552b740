// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// A /dev/shm of 1 MiB, mounted in a mount namespace of its own. Needs root, outside of a sandbox.

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "base/shared_memory.h"
#include "base/testing/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::ChildProcess;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> SharedMemoryEntries() {
  std::vector<std::string> names;
  DIR* directory = ::opendir("/dev/shm");
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  ::closedir(directory);
  return names;
}

void MountSmallSharedMemory() {
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0) << std::strerror(errno);
  ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0) << std::strerror(errno);
  ASSERT_EQ(::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m"), 0) << std::strerror(errno);
}

TEST(SmallSharedMemoryTest, TooLargeASegmentIsAnErrorAtCreationAndLeavesNothing) {
  ChildProcess child([](ChildProcess::Side&) {
    ASSERT_NO_FATAL_FAILURE(MountSmallSharedMemory());
    EXPECT_THAT(SharedMemory::Create(2 << 20).status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("2097152 bytes"), HasSubstr("1048576 bytes free"),
                               HasSubstr("/dev/shm"))));
    EXPECT_THAT(SharedMemoryEntries(), IsEmpty());
  });
  EXPECT_TRUE(child.Succeeded());
}

TEST(SmallSharedMemoryTest, WhatWasCreatedCanBeWrittenToTheLastByte) {
  ChildProcess child([](ChildProcess::Side&) {
    ASSERT_NO_FATAL_FAILURE(MountSmallSharedMemory());
    {
      absl::StatusOr<SharedMemory> whole = SharedMemory::Create(1 << 20);
      ASSERT_THAT(whole, IsOk());
      EXPECT_THAT(SharedMemory::Create(1).status(),
                  StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 bytes free")));
      std::memset(whole->data(), 0x5a, 1 << 20);
    }
    EXPECT_THAT(SharedMemoryEntries(), IsEmpty());
    EXPECT_THAT(SharedMemory::Create(1 << 20), IsOk());
  });
  EXPECT_TRUE(child.Succeeded());
}

TEST(SmallSharedMemoryTest, SweepSaysHowManyItRemoved) {
  ChildProcess child([](ChildProcess::Side&) {
    ASSERT_NO_FATAL_FAILURE(MountSmallSharedMemory());
    ChildProcess dead([](ChildProcess::Side& side) {
      const absl::StatusOr<SharedMemory> first = SharedMemory::Create(64);
      const absl::StatusOr<SharedMemory> second = SharedMemory::Create(64);
      side.Say("made");
      side.WaitForRelease();
    });
    EXPECT_EQ(dead.Hear(), "made");
    const absl::StatusOr<SharedMemory> mine = SharedMemory::Create(64);
    EXPECT_EQ(SweepSharedMemory(), 0);
    dead.Kill();
    EXPECT_EQ(SweepSharedMemory(), 2);
    EXPECT_EQ(SweepSharedMemory(), 0);
    EXPECT_EQ(SharedMemoryEntries().size(), 1u);
  });
  EXPECT_TRUE(child.Succeeded());
}

}  // namespace
}  // namespace weight_sync::base
