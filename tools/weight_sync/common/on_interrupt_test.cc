// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/on_interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/child_process.h"
#include "gtest/gtest.h"

namespace weight_sync::tools {
namespace {

using base::testing::ChildProcess;

std::string NewFile(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << "x";
  return path;
}

TEST(OnInterruptTest, TidiesUpAndDiesOfTheSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string path = NewFile("left");
    ChildProcess child([&](ChildProcess::Side& side) {
      const OnInterrupt on_interrupt([&] { std::filesystem::remove(path); });
      side.Say("waits");
      side.WaitForRelease();
    });
    ASSERT_EQ(child.Hear(), "waits");
    ASSERT_EQ(::kill(child.pid(), signal), 0);
    const int status = child.Reap();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(OnInterruptTest, LeavesAloneWhatEndsByItself) {
  const std::string path = NewFile("kept");
  ChildProcess child([&](ChildProcess::Side&) {
    const OnInterrupt on_interrupt([&] { std::filesystem::remove(path); });
  });
  EXPECT_TRUE(child.Succeeded());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(OnInterruptTest, ASignalWaitsForWhatMustNotBeDisturbed) {
  const std::string path = NewFile("published");
  ChildProcess child([&](ChildProcess::Side& side) {
    OnInterrupt on_interrupt([&] { std::filesystem::rename(path, path + ".tidied"); });
    on_interrupt.Undisturbed([&] {
      side.Say("publishes");
      side.WaitForRelease();  // the signal has been sent by now
      EXPECT_TRUE(std::filesystem::exists(path));
      std::ofstream(path) << "whole";
    });
    for (;;) ::pause();
  });
  ASSERT_EQ(child.Hear(), "publishes");
  ASSERT_EQ(::kill(child.pid(), SIGTERM), 0);
  child.Release();
  const int status = child.Reap();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  std::string text;
  std::ifstream(path + ".tidied") >> text;
  EXPECT_EQ(text, "whole");
}

TEST(OnInterruptTest, WhatWasIgnoredStaysIgnored) {
  const std::string path = NewFile("nohup");
  ChildProcess child([&](ChildProcess::Side& side) {
    ::signal(SIGHUP, SIG_IGN);
    const OnInterrupt on_interrupt([&] { std::filesystem::remove(path); });
    side.Say("waits");
    side.WaitForRelease();
  });
  ASSERT_EQ(child.Hear(), "waits");
  ASSERT_EQ(::kill(child.pid(), SIGHUP), 0);
  child.Release();
  EXPECT_TRUE(child.Succeeded());
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weight_sync::tools
