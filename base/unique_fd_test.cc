// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int OpenNull() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFdTest, OwnsNothingByDefault) {
  const UniqueFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.get(), -1);
  EXPECT_FALSE(UniqueFd(-1).valid());
}

TEST(UniqueFdTest, ClosesAtItsEndAndOnReset) {
  int number;
  {
    const UniqueFd fd(OpenNull());
    number = fd.get();
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
  UniqueFd fd(OpenNull());
  number = fd.get();
  fd.reset();
  EXPECT_FALSE(IsOpen(number));
  EXPECT_FALSE(fd.valid());
}

TEST(UniqueFdTest, MoveTakesTheDescriptorAndClosesTheOldOne) {
  UniqueFd from(OpenNull());
  const int number = from.get();
  UniqueFd to(std::move(from));
  EXPECT_FALSE(from.valid());  // NOLINT(bugprone-use-after-move): it is defined, as no descriptor
  EXPECT_EQ(to.get(), number);
  UniqueFd other(OpenNull());
  const int old = other.get();
  other = std::move(to);
  EXPECT_FALSE(IsOpen(old));
  EXPECT_EQ(other.get(), number);
  UniqueFd& same = other;
  other = std::move(same);
  EXPECT_TRUE(IsOpen(number));
}

}  // namespace
}  // namespace weight_sync::base
