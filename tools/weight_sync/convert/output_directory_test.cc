// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/convert/output_directory.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "base/testing/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::convert {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using base::testing::ChildProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

void Write(const std::string& path) { std::ofstream(path) << "x"; }

TEST(OutputDirectoryTest, FilesAppearWhenTheyArePublished) {
  const std::string path = tools::NewFolder() + "/a/new";
  {
    const auto out = OutputDirectory::Create(path);
    ASSERT_THAT(out, IsOk());
    for (const char* name : {"/config.json", "/m.safetensors", "/m.safetensors.index.json"}) {
      Write((*out)->staging() + name);
    }
    EXPECT_THAT(tools::NamesIn(path), ElementsAre(HasSubstr(".weight_sync.")));
    EXPECT_THAT((*out)->Publish(), IsOk());
  }
  EXPECT_THAT(tools::NamesIn(path),
              ElementsAre("config.json", "m.safetensors", "m.safetensors.index.json"));
}

TEST(OutputDirectoryTest, WhatIsNotPublishedLeavesNothing) {
  const std::string parent = tools::NewFolder(), there = tools::NewFolder();
  for (const std::string& path : {parent + "/new", there}) {
    const auto out = OutputDirectory::Create(path);
    ASSERT_THAT(out, IsOk());
    Write((*out)->staging() + "/x");
  }
  EXPECT_THAT(tools::NamesIn(parent), IsEmpty());
  EXPECT_TRUE(fs::exists(there));
  EXPECT_THAT(tools::NamesIn(there), IsEmpty());
}

TEST(OutputDirectoryTest, APublicationThatFailsIsTakenBack) {
  const std::string path = tools::NewFolder();
  {
    const auto out = OutputDirectory::Create(path);
    ASSERT_THAT(out, IsOk());
    Write((*out)->staging() + "/a");
    Write((*out)->staging() + "/b");
    fs::create_directories(path + "/b/in_the_way");
    EXPECT_THAT((*out)->Publish(), StatusIs(::testing::_, HasSubstr(path + "/b'")));
  }
  EXPECT_THAT(tools::NamesIn(path), ElementsAre("b"));
}

TEST(OutputDirectoryTest, AFolderThatHoldsSomethingIsRefused) {
  const std::string path = tools::NewFolder();
  Write(path + "/x");
  EXPECT_THAT(OutputDirectory::Create(path),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not empty")));
  EXPECT_THAT(tools::NamesIn(path), ElementsAre("x"));
  EXPECT_THAT(OutputDirectory::Create(path + "/x/y"), StatusIs(::testing::_, HasSubstr("/x/y'")));
}

TEST(OutputDirectoryTest, AnInterruptLeavesNothing) {
  const std::string parent = tools::NewFolder();
  ChildProcess child([&](ChildProcess::Side& side) {
    const auto out = OutputDirectory::Create(parent + "/new");
    ASSERT_THAT(out, IsOk());
    Write((*out)->staging() + "/half");
    side.Say("half");
    side.WaitForRelease();
  });
  ASSERT_EQ(child.Hear(), "half");
  EXPECT_EQ(tools::NamesIn(parent + "/new").size(), 1u);
  ASSERT_EQ(::kill(child.pid(), SIGINT), 0);
  const int status = child.Reap();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_THAT(tools::NamesIn(parent), IsEmpty());
}

}  // namespace
}  // namespace weight_sync::convert
