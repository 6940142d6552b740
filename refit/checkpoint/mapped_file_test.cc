// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/mapped_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::testing::HasSubstr;

std::string Write(const std::string& name, absl::string_view text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string Text(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST(MappedFileTest, HoldsTheBytesAndKeepsThemWhenMoved) {
  MappedFile first = MappedFile::Open(Write("first", "hello")).value();
  const std::byte* const address = first.bytes().data();
  MappedFile moved = std::move(first);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(Text(moved), "hello");
  moved = MappedFile::Open(Write("second", "world")).value();
  EXPECT_EQ(Text(moved), "world");
}

TEST(MappedFileTest, EmptyFileHasNoBytes) {
  EXPECT_TRUE(MappedFile::Open(Write("empty", "")).value().bytes().empty());
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  const std::string pipe = testing::TempDir() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {testing::TempDir() + "/absent", testing::TempDir(), pipe}) {
    const absl::Status status = MappedFile::Open(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + path + "'"));
  }
}

}  // namespace
}  // namespace weight_sync::refit
