// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/pending_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/test_files.h"

namespace weight_sync::refit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(PendingFileTest, AppearsCompleteAndReplacesTheOldFile) {
  const std::string directory = NewTestDirectory();
  const std::string path = directory + "/x";
  WriteTestFile(path, "old");
  PendingFile file = PendingFile::Create(path).value();
  ASSERT_EQ(file.Append(Bytes("hello ")), absl::OkStatus());
  ASSERT_EQ(file.Append(Bytes("world")), absl::OkStatus());
  ASSERT_EQ(file.Close(), absl::OkStatus());
  EXPECT_EQ(ReadTestFile(path), "old");
  ASSERT_EQ(file.Publish(), absl::OkStatus());
  EXPECT_EQ(ReadTestFile(path), "hello world");
  EXPECT_THAT(ListTestDirectory(directory), ElementsAre("x"));
}

TEST(PendingFileTest, IsMadeOfWhatWasWrittenWhereItIsMapped) {
  const std::string path = NewTestDirectory() + "/x";
  PendingFile file = PendingFile::Create(path).value();
  const absl::Span<std::byte> bytes = file.Map(4).value();
  bytes[3] = std::byte{'d'};
  bytes[0] = std::byte{'a'};
  ASSERT_EQ(file.Close(), absl::OkStatus());
  ASSERT_EQ(file.Publish(), absl::OkStatus());
  EXPECT_EQ(ReadTestFile(path), std::string("a\0\0d", 4));
}

TEST(PendingFileTest, OfTextIsComplete) {
  const std::string path = NewTestDirectory() + "/x";
  PendingFile file = PendingFile::OfText(path, "text").value();
  ASSERT_EQ(file.Publish(), absl::OkStatus());
  EXPECT_EQ(ReadTestFile(path), "text");
}

TEST(PendingFileTest, SeveralArePublishedAllOrNone) {
  const std::string directory = NewTestDirectory();
  std::vector<PendingFile> files;
  for (const char* name : {"/a", "/b", "/c"}) {
    files.push_back(PendingFile::OfText(directory + name, name).value());
  }
  ASSERT_EQ(mkdir((directory + "/c").c_str(), 0700), 0);  // in the way
  EXPECT_EQ(PublishAll(files).code(), absl::StatusCode::kInvalidArgument);
  files.clear();
  EXPECT_THAT(ListTestDirectory(directory), ElementsAre("c"));
}

TEST(PendingFileTest, IsRemovedUnlessPublished) {
  const std::string directory = NewTestDirectory();
  {
    PendingFile open = PendingFile::Create(directory + "/x").value();
    PendingFile closed = PendingFile::Create(directory + "/x").value();
    ASSERT_EQ(closed.Close(), absl::OkStatus());
    const PendingFile moved = std::move(open);
    EXPECT_EQ(ListTestDirectory(directory).size(), 2);
  }
  EXPECT_THAT(ListTestDirectory(directory), IsEmpty());
}

TEST(PendingFileTest, FailedPublicationIsRemovedAndNamed) {
  const std::string directory = NewTestDirectory();
  const std::string path = directory + "/x";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  {
    PendingFile file = PendingFile::Create(path).value();
    ASSERT_EQ(file.Close(), absl::OkStatus());
    const absl::Status status = file.Publish();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + path + "'"));
  }
  EXPECT_THAT(ListTestDirectory(directory), ElementsAre("x"));
}

TEST(PendingFileTest, HasThePermissionsThatTheUmaskLeaves) {
  const std::string path = NewTestDirectory() + "/x";
  const mode_t before = umask(027);
  PendingFile file = PendingFile::Create(path).value();
  umask(before);
  ASSERT_EQ(file.Close(), absl::OkStatus());
  ASSERT_EQ(file.Publish(), absl::OkStatus());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640);
}

TEST(PendingFileTest, NeedsTheDirectory) {
  const std::string path = NewTestDirectory() + "/absent/x";
  const absl::Status status = PendingFile::Create(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("for '" + path + "'"));
}

}  // namespace
}  // namespace weight_sync::refit
