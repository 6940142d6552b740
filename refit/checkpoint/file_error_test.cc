// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/file_error.h"

#include <cerrno>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

TEST(FileErrorTest, NamesActionPathAndReason) {
  EXPECT_EQ(FileError("open", "/a/b", ENOENT),
            absl::InvalidArgumentError("cannot open '/a/b': No such file or directory"));
}

TEST(FileErrorTest, TellsExhaustionFromMistakesAndBrokenDevices) {
  for (const int error : {ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE}) {
    EXPECT_EQ(FileError("write", "x", error).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(FileError("write", "x", EIO).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(FileError("write", "x", EACCES).code(), absl::StatusCode::kInvalidArgument);
}

TEST(FileErrorTest, BadContentNamesTheFile) {
  EXPECT_EQ(BadFile("/a/b", "too short"), absl::InvalidArgumentError("file '/a/b': too short"));
}

}  // namespace
}  // namespace weight_sync::refit
