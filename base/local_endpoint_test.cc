// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/local_endpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "base/testing/child_process.h"
#include "base/testing/socket_file.h"
#include "base/testing/socket_folder.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::ChildProcess;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ListenAt;
using testing::SocketFolder;
using ::testing::StartsWith;

bool Exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

std::string OwnedBy(pid_t pid) { return absl::StrCat("is owned by living process ", pid); }

// Sets an environment variable, or removes it, for as long as it lives.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ~ScopedEnv() { Set(old_ ? old_->c_str() : nullptr); }

 private:
  void Set(const char* value) {
    if (value != nullptr) {
      ::setenv(name_, value, 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(CheckEndpointPathTest, TakesThe107BytesOfASocketAddressAndNoMore) {
  const SocketFolder folder;
  const std::string base = folder.path() + "/";
  const std::string longest = base + std::string(107 - base.size(), 'x');
  EXPECT_THAT(CheckEndpointPath(longest), IsOk());
  const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(longest);
  ASSERT_THAT(claim, IsOk());
  EXPECT_TRUE(ListenAt(longest).valid());

  for (const absl::Status& refused :
       {CheckEndpointPath(longest + "x"), LocalEndpoint::Claim(longest + "x").status()}) {
    EXPECT_THAT(refused,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("108"), HasSubstr("107"), HasSubstr(longest + "x"))));
  }
}

TEST(CheckEndpointPathTest, RefusesWhatIsNotTheAbsolutePathOfAFile) {
  for (const char* path : {"", "relative.sock", "./x.sock", "/tmp/folder/", "@abstract"}) {
    EXPECT_THAT(CheckEndpointPath(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr(absl::StrCat("'", path, "'"))));
  }
}

TEST(DefaultEndpointPathTest, LongNamesThatDifferOnlyInTheirTailsDiffer) {
  const std::string job(4096, 'j');
  const std::string path = DefaultEndpointPath(job + "0", "engine-0");
  EXPECT_THAT(CheckEndpointPath(path), IsOk());
  EXPECT_NE(path, DefaultEndpointPath(job + "1", "engine-0"));
  EXPECT_NE(path, DefaultEndpointPath(job + "0", "engine-1"));
  EXPECT_NE(DefaultEndpointPath("ab", "c"), DefaultEndpointPath("a", "bc"));
}

TEST(DefaultEndpointPathTest, BothEndsComputeTheSame) {
  const std::string path = DefaultEndpointPath("job-7", "engine-0");
  ChildProcess child(
      [](ChildProcess::Side& side) { side.Say(DefaultEndpointPath("job-7", "engine-0")); });
  EXPECT_EQ(child.Hear(), path);
}

TEST(DefaultEndpointPathTest, LiesInAFolderOfTheUserWhateverTheEnvironment) {
  const std::string path = DefaultEndpointPath("job", "engine");
  EXPECT_THAT(path, AllOf(StartsWith(absl::StrCat("/tmp/weight_sync-", ::geteuid(), "/")),
                          EndsWith(".sock")));
  const ScopedEnv runtime("XDG_RUNTIME_DIR", "/run/user/7");
  const ScopedEnv temporary("TMPDIR", "/var/tmp");
  EXPECT_EQ(DefaultEndpointPath("job", "engine"), path);
}

TEST(LocalEndpointTest, DefaultPathCanBeClaimed) {
  const std::string path = DefaultEndpointPath(absl::StrCat("test ", ::getpid()), "engine");
  const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
  ASSERT_THAT(claim, IsOk());
  struct stat info;
  ASSERT_EQ(::stat(path.substr(0, path.rfind('/')).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST(LocalEndpointTest, AMissingFolderIsMadePrivate) {
  const SocketFolder folder;
  const std::string inner = folder.path() + "/made";
  const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(inner + "/engine.sock");
  ASSERT_THAT(claim, IsOk());
  struct stat info;
  ASSERT_EQ(::stat(inner.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST(LocalEndpointTest, ClaimGivesPathAndUriAndLeavesNothingBehind) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  {
    absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
    ASSERT_THAT(claim, IsOk());
    EXPECT_EQ(claim->path(), path);
    EXPECT_EQ(claim->uri(), "ipc://" + path);
    EXPECT_TRUE(ListenAt(path).valid());
    const LocalEndpoint moved = *std::move(claim);
    EXPECT_TRUE(Exists(path));
    EXPECT_THAT(LocalEndpoint::Claim(path).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LocalEndpointTest, SecondClaimOfOneProcessIsRefused) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
  ASSERT_THAT(claim, IsOk());
  EXPECT_THAT(LocalEndpoint::Claim(path).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path), HasSubstr(OwnedBy(::getpid())))));
}

TEST(LocalEndpointTest, LivingOwnerIsNamedAndAKilledOnesSocketIsReplaced) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  ChildProcess owner([&](ChildProcess::Side& side) {
    const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
    ASSERT_THAT(claim, IsOk());
    const UniqueFd socket = ListenAt(path);
    side.Say("listening");
    side.WaitForRelease();
  });
  ASSERT_EQ(owner.Hear(), "listening");
  EXPECT_THAT(LocalEndpoint::Claim(path).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path), HasSubstr(OwnedBy(owner.pid())))));
  EXPECT_TRUE(Exists(path));

  owner.Kill();
  ASSERT_TRUE(Exists(path));
  const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
  ASSERT_THAT(claim, IsOk());
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(ListenAt(path).valid());
  EXPECT_THAT(LocalEndpoint::Claim(path).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(OwnedBy(::getpid()))));
}

TEST(LocalEndpointTest, AnythingButASocketIsLeftAlone) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/precious";
  const auto refused = [&] {
    EXPECT_THAT(LocalEndpoint::Claim(path).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(path), HasSubstr("not a socket"))));
    EXPECT_FALSE(Exists(path + ".lock"));
  };
  std::ofstream(path) << "keep me";
  refused();
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "keep me");
  std::filesystem::rename(path, folder.path() + "/elsewhere");

  std::filesystem::create_symlink(folder.path() + "/elsewhere", path);
  refused();
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  std::filesystem::remove(path);

  std::filesystem::create_directory(path);
  refused();
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(LocalEndpointTest, LockThatIsALinkIsNotFollowed) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  std::ofstream(folder.path() + "/precious") << "keep me";
  std::filesystem::create_symlink(folder.path() + "/precious", path + ".lock");
  EXPECT_THAT(LocalEndpoint::Claim(path).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path + ".lock")));
  EXPECT_EQ(std::filesystem::file_size(folder.path() + "/precious"), 7u);
}

TEST(LocalEndpointTest, DirectoryMustBePrivate) {
  const SocketFolder folder;
  const std::string open = folder.path() + "/open";
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  for (const mode_t mode : {0755u, 0710u, 0701u, 01777u}) {
    ASSERT_EQ(::chmod(open.c_str(), mode), 0);
    EXPECT_THAT(
        LocalEndpoint::Claim(open + "/engine.sock").status(),
        StatusIs(absl::StatusCode::kFailedPrecondition, AllOf(HasSubstr(open), HasSubstr("700"))));
    EXPECT_TRUE(std::filesystem::is_empty(open));
  }
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  EXPECT_THAT(LocalEndpoint::Claim(open + "/engine.sock").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("mode 755")));
}

TEST(LocalEndpointTest, DirectoryMustBeADirectory) {
  const SocketFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  std::filesystem::create_directory_symlink(folder.path(), folder.path() + "/link");
  for (const std::string directory : {"/file", "/link", "/no/such"}) {
    EXPECT_THAT(
        LocalEndpoint::Claim(folder.path() + directory + "/engine.sock").status(),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(folder.path() + directory)));
  }
  EXPECT_THAT(LocalEndpoint::Claim("/engine.sock").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("endpoint directory /")));
}

TEST(LocalEndpointTest, OneOfTwentyProcessesThatClaimAtOnceWins) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  std::vector<std::unique_ptr<ChildProcess>> claimers;
  int start[2];
  ASSERT_EQ(::pipe2(start, O_CLOEXEC), 0);
  for (int i = 0; i < 20; ++i) {
    claimers.push_back(std::make_unique<ChildProcess>([&](ChildProcess::Side& side) {
      ::close(start[1]);
      side.Say("ready");
      char byte;
      EXPECT_EQ(::read(start[0], &byte, 1), 0);  // the parent closes it: all go at once
      const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
      if (!claim.ok()) {
        EXPECT_THAT(claim.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                             HasSubstr("owned by living process")));
      }
      side.Say(claim.ok() ? "won" : "lost");
      side.WaitForRelease();
    }));
    ASSERT_EQ(claimers.back()->Hear(), "ready");
  }
  ::close(start[1]);
  ::close(start[0]);
  int won = 0;
  for (auto& claimer : claimers) {
    const std::string answer = claimer->Hear();
    EXPECT_THAT(answer, ::testing::AnyOf("won", "lost"));
    won += answer == "won" ? 1 : 0;
  }
  EXPECT_EQ(won, 1);
  // A child inherits its elder sisters' pipes, so the youngest is released first.
  while (!claimers.empty()) {
    claimers.back()->Release();
    EXPECT_TRUE(claimers.back()->Succeeded());
    claimers.pop_back();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LocalEndpointTest, ThreadsThatClaimAndReleaseNeverOwnItTogether) {
  const SocketFolder folder;
  const std::string path = folder.path() + "/engine.sock";
  std::atomic<int> owners{0};
  std::atomic<int> claims{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const absl::StatusOr<LocalEndpoint> claim = LocalEndpoint::Claim(path);
        if (!claim.ok()) continue;
        ++claims;
        EXPECT_EQ(owners.fetch_add(1), 0);
        EXPECT_TRUE(ListenAt(path).valid());  // no other owner's socket is there
        EXPECT_TRUE(Exists(path));            // and nobody removed this one's
        owners.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(claims.load(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace weight_sync::base
