// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/shared_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/child_process.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::ChildProcess;
using ::testing::HasSubstr;

// Other tests use /dev/shm at the same time, and sweep it: only this test's names are looked at.
std::string PathOf(const std::string& name) { return absl::StrCat("/dev/shm", name); }

bool Exists(const std::string& name) {
  struct stat info;
  return ::lstat(PathOf(name).c_str(), &info) == 0;
}

SharedMemory MustCreate(int64_t bytes) {
  absl::StatusOr<SharedMemory> segment = SharedMemory::Create(bytes);
  EXPECT_THAT(segment, IsOk());
  return *std::move(segment);
}

TEST(SharedMemoryTest, IsAllocatedExactlyPrivateAndZero) {
  const mode_t old_mask = ::umask(0);
  for (const int64_t bytes : {1, 4095, 4096, 4097, 3 << 20}) {
    const SharedMemory segment = MustCreate(bytes);
    EXPECT_EQ(segment.bytes(), bytes);
    EXPECT_TRUE(
        absl::StartsWith(segment.name(), absl::StrCat("/", SharedMemoryPrefix(::getpid()))));
    struct stat info;
    ASSERT_EQ(::stat(PathOf(segment.name()).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    EXPECT_EQ(info.st_uid, ::geteuid());
    EXPECT_EQ(info.st_size, bytes);
    EXPECT_EQ(info.st_blocks * 512, (bytes + 4095) / 4096 * 4096);
    EXPECT_TRUE(std::all_of(segment.data(), segment.data() + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::memset(segment.data(), 0x5a, static_cast<size_t>(bytes));
  }
  ::umask(old_mask);
}

TEST(SharedMemoryTest, BothEndsSeeTheSameBytesAlsoAfterUnlink) {
  SharedMemory created = MustCreate(8192);
  absl::StatusOr<SharedMemory> opened = SharedMemory::Open(created.name(), 8192);
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->bytes(), 8192);
  EXPECT_EQ(opened->name(), created.name());
  std::memcpy(created.data(), "to the engine", 13);
  EXPECT_EQ(std::memcmp(opened->data(), "to the engine", 13), 0);
  EXPECT_THAT(created.Unlink(), IsOk());
  EXPECT_FALSE(Exists(created.name()));
  std::memcpy(opened->data() + 8000, "to the trainer", 14);
  EXPECT_EQ(std::memcmp(created.data() + 8000, "to the trainer", 14), 0);
}

TEST(SharedMemoryTest, ProcessesShareIt) {
  SharedMemory segment = MustCreate(4096);
  ChildProcess child([&](ChildProcess::Side& side) {
    absl::StatusOr<SharedMemory> opened = SharedMemory::Open(segment.name(), 4096);
    ASSERT_THAT(opened, IsOk());
    std::memcpy(opened->data(), "from the child", 14);
    side.Say("written");
  });
  EXPECT_EQ(child.Hear(), "written");
  EXPECT_EQ(std::memcmp(segment.data(), "from the child", 14), 0);
  EXPECT_TRUE(child.Succeeded());
}

TEST(SharedMemoryTest, NamesDiffer) {
  const SharedMemory a = MustCreate(64);
  const SharedMemory b = MustCreate(64);
  EXPECT_NE(a.name(), b.name());
}

TEST(SharedMemoryTest, SizesThatCannotBeAreRefused) {
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}}) {
    EXPECT_THAT(SharedMemory::Create(bytes).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(bytes))));
  }
  const int64_t huge = int64_t{1} << 60;
  EXPECT_THAT(SharedMemory::Create(huge).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(absl::StrCat(huge)), HasSubstr("bytes free"))));
}

TEST(SharedMemoryTest, UnlinkTwiceIsHarmless) {
  SharedMemory segment = MustCreate(64);
  EXPECT_THAT(segment.Unlink(), IsOk());
  EXPECT_THAT(segment.Unlink(), IsOk());
  EXPECT_THAT(SharedMemory::Open(segment.name(), 64).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(segment.name())));
}

TEST(SharedMemoryTest, UnlinkSaysOnceThatTheNameWasTaken) {
  SharedMemory segment = MustCreate(64);
  ASSERT_EQ(::unlink(PathOf(segment.name()).c_str()), 0);
  EXPECT_THAT(segment.Unlink(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(segment.name())));
  EXPECT_THAT(segment.Unlink(), IsOk());
}

TEST(SharedMemoryTest, OnlyTheCreatorRemovesTheName) {
  SharedMemory created = MustCreate(64);
  {
    absl::StatusOr<SharedMemory> opened = SharedMemory::Open(created.name(), 64);
    ASSERT_THAT(opened, IsOk());
    EXPECT_THAT(opened->Unlink(), IsOk());
  }
  EXPECT_TRUE(Exists(created.name()));
}

TEST(SharedMemoryTest, DestructorRemovesTheName) {
  std::string name;
  {
    const SharedMemory segment = MustCreate(64);
    name = segment.name();
    EXPECT_TRUE(Exists(name));
  }
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryTest, MoveTakesMemoryAndName) {
  SharedMemory from = MustCreate(64);
  const std::string name = from.name();
  std::byte* const data = from.data();
  SharedMemory to = std::move(from);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): it is defined, as nothing
  EXPECT_EQ(from.bytes(), 0);
  EXPECT_THAT(from.Unlink(), IsOk());
  EXPECT_TRUE(Exists(name));
  EXPECT_EQ(to.data(), data);

  SharedMemory other = MustCreate(128);
  const std::string other_name = other.name();
  other = std::move(to);
  EXPECT_FALSE(Exists(other_name));
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.bytes(), 64);
  EXPECT_EQ(other.name(), name);
  other.data()[63] = std::byte{1};
  SharedMemory& same = other;
  other = std::move(same);
  EXPECT_EQ(other.data(), data);
  EXPECT_TRUE(Exists(name));
}

TEST(SharedMemoryOpenTest, AnotherSizeIsRefusedNamingBoth) {
  const SharedMemory segment = MustCreate(4096);
  for (const int64_t bytes : {int64_t{4095}, int64_t{4097}, int64_t{0}, int64_t{-1}}) {
    EXPECT_THAT(SharedMemory::Open(segment.name(), bytes).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(segment.name()), HasSubstr("has 4096 bytes"),
                               HasSubstr(absl::StrCat("where ", bytes)))));
  }
}

TEST(SharedMemoryOpenTest, AnotherModeIsRefused) {
  const SharedMemory segment = MustCreate(64);
  for (const mode_t mode : {0640u, 0602u, 0700u}) {
    ASSERT_EQ(::chmod(PathOf(segment.name()).c_str(), mode), 0);
    EXPECT_THAT(SharedMemory::Open(segment.name(), 64).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(segment.name()), HasSubstr("mode 600"))));
  }
}

TEST(SharedMemoryOpenTest, NamesThatAreNotThisUsersAreRefused) {
  const std::string prefix = SharedMemoryPrefix();
  for (const std::string& name :
       {std::string(), std::string("/"), std::string("/other"), prefix + "1.0",
        absl::StrCat("/weight_sync.", ::geteuid() + 1, ".1.0"), "/" + prefix + "a/b",
        "/" + prefix + "/../../etc/passwd", "//" + prefix + "1.0"}) {
    EXPECT_THAT(SharedMemory::Open(name, 64).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'" + name + "'")));
  }
}

TEST(SharedMemoryOpenTest, MissingSegmentIsUnavailable) {
  const std::string name = absl::StrCat("/", SharedMemoryPrefix(), "no-such-segment");
  EXPECT_THAT(SharedMemory::Open(name, 64).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(name)));
}

TEST(SharedMemoryOpenTest, LinksAndPipesAreRefused) {
  const SharedMemory target = MustCreate(64);
  const std::string name =
      absl::StrCat("/", SharedMemoryPrefix(), "kinds-", target.name().substr(1));
  const absl::Cleanup remove = [&] { ::unlink(PathOf(name).c_str()); };
  ASSERT_EQ(::symlink(PathOf(target.name()).c_str(), PathOf(name).c_str()), 0);
  EXPECT_THAT(SharedMemory::Open(name, 64).status(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_EQ(::unlink(PathOf(name).c_str()), 0);

  ASSERT_EQ(::mkfifo(PathOf(name).c_str(), 0600), 0);
  const UniqueFd owner(::open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(owner.get(), LOCK_EX), 0);  // so that no sweeper takes it
  EXPECT_THAT(SharedMemory::Open(name, 0).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(name)));
}

TEST(SweepSharedMemoryTest, RemovesWhatAKilledCreatorLeftAndKeepsALivingOnes) {
  SharedMemory mine = MustCreate(64);
  ChildProcess victim([](ChildProcess::Side& side) {
    const SharedMemory segment = MustCreate(64);
    side.Say(segment.name());
    side.WaitForRelease();
  });
  ChildProcess survivor([](ChildProcess::Side& side) {
    const SharedMemory segment = MustCreate(64);
    side.Say(segment.name());
    side.WaitForRelease();
    EXPECT_TRUE(Exists(segment.name()));
  });
  const std::string dead = victim.Hear();
  const std::string alive = survivor.Hear();
  SweepSharedMemory();
  EXPECT_TRUE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(mine.name()));

  victim.Kill();
  SweepSharedMemory();
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(mine.name()));
  EXPECT_THAT(SharedMemory::Open(alive, 64), IsOk());

  survivor.Release();
  EXPECT_TRUE(survivor.Succeeded());
  EXPECT_FALSE(Exists(alive));
}

TEST(SweepSharedMemoryTest, RemovesWhatACreatorLeftThatEndedWithoutDestructors) {
  ChildProcess child([](ChildProcess::Side& side) {
    const SharedMemory segment = MustCreate(64);
    side.Say(segment.name());
    side.WaitForRelease();
    ::_exit(0);
  });
  const std::string name = child.Hear();
  EXPECT_TRUE(Exists(name));
  child.Release();
  EXPECT_TRUE(child.Succeeded());
  SweepSharedMemory();
  EXPECT_FALSE(Exists(name));
}

TEST(SweepSharedMemoryTest, LeavesOtherNamesAlone) {
  const std::string name = absl::StrCat("/weight_sync_test_other.", ::getpid());
  const absl::Cleanup remove = [&] { ::unlink(PathOf(name).c_str()); };
  const UniqueFd fd(::open(PathOf(name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(fd.valid());
  SweepSharedMemory();
  EXPECT_TRUE(Exists(name));
}

// A sweeper that looks in the instant between creation and lock must not take the segment away.
TEST(SweepSharedMemoryTest, NeverTakesASegmentThatIsJustBeingMade) {
  std::atomic<bool> done{false};
  std::vector<std::thread> sweepers;
  for (int i = 0; i < 2; ++i) {
    sweepers.emplace_back([&done] {
      while (!done.load()) SweepSharedMemory();
    });
  }
  std::vector<std::thread> creators;
  for (int i = 0; i < 2; ++i) {
    creators.emplace_back([] {
      for (int round = 0; round < 300; ++round) {
        SharedMemory segment = MustCreate(64);
        EXPECT_THAT(SharedMemory::Open(segment.name(), 64), IsOk());
        EXPECT_THAT(segment.Unlink(), IsOk());
      }
    });
  }
  for (std::thread& creator : creators) creator.join();
  done.store(true);
  for (std::thread& sweeper : sweepers) sweeper.join();
}

}  // namespace
}  // namespace weight_sync::base
