// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Endpoints of which another user owns a part. Needs root, outside of a sandbox.

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "base/local_endpoint.h"
#include "base/testing/child_process.h"
#include "base/testing/socket_file.h"
#include "base/testing/socket_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::ChildProcess;
using ::testing::HasSubstr;
using testing::ListenAt;
using testing::SocketFolder;

constexpr uid_t kUser = 65534;

// What user 65534 is told when it claims `path`.
void ExpectClaimByUser(const std::string& path, const ::testing::Matcher<absl::Status>& matcher) {
  ChildProcess child([&](ChildProcess::Side&) {
    ASSERT_EQ(::setgid(kUser), 0);
    ASSERT_EQ(::setuid(kUser), 0);
    EXPECT_THAT(LocalEndpoint::Claim(path).status(), matcher);
  });
  EXPECT_TRUE(child.Succeeded());
}

bool IsSocket(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

class OtherUsersEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getuid(), 0u) << "this test runs as root";
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  }
  void GiveDirectoryToUser() { ASSERT_EQ(::chown(directory_.c_str(), kUser, kUser), 0); }

  SocketFolder folder_;
  const std::string directory_ = folder_.path() + "/private";
  const std::string path_ = directory_ + "/engine.sock";
};

TEST_F(OtherUsersEndpointTest, OwnDirectoryIsFine) {
  GiveDirectoryToUser();
  ExpectClaimByUser(path_, IsOk());
}

TEST_F(OtherUsersEndpointTest, DirectoryOfAnotherUserIsRefused) {
  ExpectClaimByUser(path_, StatusIs(absl::StatusCode::kFailedPrecondition,
                                    AllOf(HasSubstr(directory_), HasSubstr("of user 65534"),
                                          HasSubstr("of user 0"))));
  // Root could, and does not either.
  GiveDirectoryToUser();
  EXPECT_THAT(LocalEndpoint::Claim(path_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(directory_), HasSubstr("it is of user 65534"))));
}

TEST_F(OtherUsersEndpointTest, LockFileOfAnotherUserIsRefused) {
  GiveDirectoryToUser();
  std::ofstream(path_ + ".lock") << "";
  ASSERT_EQ(::chmod((path_ + ".lock").c_str(), 0600), 0);
  ExpectClaimByUser(path_, StatusIs(absl::StatusCode::kFailedPrecondition,
                                    AllOf(HasSubstr(path_), HasSubstr("Permission denied"))));
  ASSERT_EQ(::chmod((path_ + ".lock").c_str(), 0666), 0);
  ExpectClaimByUser(path_, StatusIs(absl::StatusCode::kFailedPrecondition,
                                    AllOf(HasSubstr(path_), HasSubstr("belongs to user 0"))));
}

TEST_F(OtherUsersEndpointTest, SocketOfAnotherUserIsRefusedAndLeftAlone) {
  GiveDirectoryToUser();
  ASSERT_TRUE(ListenAt(path_).valid());
  ExpectClaimByUser(path_, StatusIs(absl::StatusCode::kFailedPrecondition,
                                    AllOf(HasSubstr(path_), HasSubstr("belongs to user 0"))));
  EXPECT_TRUE(IsSocket(path_));
}

}  // namespace
}  // namespace weight_sync::base
