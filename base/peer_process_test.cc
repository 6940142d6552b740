// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "base/peer_process.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/testing/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::base {
namespace {

using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::ChildProcess;
using ::testing::HasSubstr;

bool EndSeen(const PeerProcess& peer, int timeout_ms) {
  pollfd poll_fd{peer.fd(), POLLIN, 0};
  return ::poll(&poll_fd, 1, timeout_ms) == 1 && (poll_fd.revents & POLLIN) != 0;
}

TEST(PeerProcessTest, KilledPeerIsSeenThroughTheDescriptorBeforeItIsReaped) {
  ChildProcess child([](ChildProcess::Side& side) { side.WaitForRelease(); });
  const pid_t pid = child.pid();
  absl::StatusOr<PeerProcess> peer = PeerProcess::Watch(pid, "engine");
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->pid(), pid);
  EXPECT_TRUE(peer->alive());
  EXPECT_FALSE(EndSeen(*peer, 0));

  child.KillOnly();
  EXPECT_TRUE(EndSeen(*peer, 60'000));
  EXPECT_FALSE(peer->alive());

  // A watch that starts while the peer is a zombie sees the same.
  absl::StatusOr<PeerProcess> late = PeerProcess::Watch(pid, "engine");
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_TRUE(EndSeen(*late, 0));
  EXPECT_FALSE(late->alive());

  child.Reap();
  EXPECT_FALSE(peer->alive());
  EXPECT_THAT(peer->LostError(), StatusIs(absl::StatusCode::kUnavailable,
                                          absl::StrCat("engine (pid ", pid, ") died")));
}

TEST(PeerProcessTest, PeerThatReturnsIsSeenToo) {
  ChildProcess child([](ChildProcess::Side& side) { side.WaitForRelease(); });
  absl::StatusOr<PeerProcess> peer = PeerProcess::Watch(child.pid(), "trainer");
  ASSERT_TRUE(peer.ok()) << peer.status();
  child.Release();
  EXPECT_TRUE(EndSeen(*peer, 60'000));
  EXPECT_FALSE(peer->alive());
}

TEST(PeerProcessTest, MovedWatchWatchesOn) {
  ChildProcess child([](ChildProcess::Side& side) { side.WaitForRelease(); });
  absl::StatusOr<PeerProcess> peer = PeerProcess::Watch(child.pid(), "engine");
  ASSERT_TRUE(peer.ok()) << peer.status();
  const PeerProcess moved = *std::move(peer);
  EXPECT_TRUE(moved.alive());
  EXPECT_EQ(moved.name(), absl::StrCat("engine (pid ", child.pid(), ")"));
  child.Kill();
  EXPECT_FALSE(moved.alive());
}

TEST(PeerProcessTest, NoSuchProcessIsUnavailableAndNamed) {
  ChildProcess child([](ChildProcess::Side&) {});
  const pid_t pid = child.pid();
  child.Reap();
  EXPECT_THAT(PeerProcess::Watch(pid, "engine").status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(absl::StrCat("engine (pid ", pid, ")")),
                             HasSubstr("no such process"))));
}

TEST(PeerProcessTest, PidOfAnotherNamespaceIsRefused) {
  for (const pid_t pid : {0, -1}) {
    EXPECT_THAT(
        PeerProcess::Watch(pid, "engine").status(),
        StatusIs(absl::StatusCode::kUnavailable,
                 AllOf(HasSubstr("the engine is not visible"), HasSubstr("pid namespace"))));
  }
}

}  // namespace
}  // namespace weight_sync::base
