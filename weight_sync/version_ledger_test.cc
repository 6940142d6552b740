// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/version_ledger.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace weight_sync {
namespace {

TEST(VersionLedgerTest, AFreshLedgerIsStaleAtEveryVersion) {
  for (const refit::Version version : {0, 1, 41}) {
    EXPECT_TRUE(VersionLedger(version, std::nullopt).is_stale()) << version;
  }
}

TEST(VersionLedgerTest, IsFreshWhenToldThatTheEngineHoldsThePolicysVersion) {
  EXPECT_FALSE(VersionLedger(7, 7).is_stale());
  EXPECT_TRUE(VersionLedger(7, 6).is_stale());
  EXPECT_TRUE(VersionLedger(7, 8).is_stale());
}

TEST(VersionLedgerTest, AMarkAdvancesThePolicyAndMakesItStale) {
  VersionLedger ledger(7, 7);
  ledger.MarkStale();
  EXPECT_EQ(ledger.policy_version(), 8);
  EXPECT_TRUE(ledger.is_stale());
  ledger.Acknowledge(8);
  EXPECT_FALSE(ledger.is_stale());
}

TEST(VersionLedgerTest, TwoMarksNeedOneSync) {
  VersionLedger ledger(0, 0);
  ledger.MarkStale();
  ledger.MarkStale();
  ledger.Acknowledge(ledger.policy_version());
  EXPECT_FALSE(ledger.is_stale());
  EXPECT_EQ(ledger.policy_version(), 2);
}

TEST(VersionLedgerTest, AMarkDuringASyncLeavesTheEngineStale) {
  VersionLedger ledger(0, std::nullopt);
  const refit::Version synced = ledger.policy_version();
  ledger.MarkStale();
  ledger.Acknowledge(synced);
  EXPECT_TRUE(ledger.is_stale());
}

TEST(VersionLedgerTest, AForgottenEngineIsStaleUntilTheNextSync) {
  VersionLedger ledger(3, 3);
  ledger.ForgetEngine();
  EXPECT_TRUE(ledger.is_stale());
  EXPECT_EQ(ledger.policy_version(), 3);
  ledger.Acknowledge(3);
  EXPECT_FALSE(ledger.is_stale());
}

TEST(VersionLedgerTest, NoMarkOfManyThreadsIsLost) {
  constexpr int kThreads = 4;
  constexpr int kMarks = 20'000;
  VersionLedger ledger(0, std::nullopt);
  std::atomic<bool> marking{true};
  std::thread syncing([&] {
    while (marking) {
      ledger.Acknowledge(ledger.policy_version());
    }
  });
  std::vector<std::thread> markers;
  for (int i = 0; i < kThreads; ++i) {
    markers.emplace_back([&] {
      for (int k = 0; k < kMarks; ++k) ledger.MarkStale();
    });
  }
  for (std::thread& marker : markers) marker.join();
  marking = false;
  syncing.join();
  EXPECT_EQ(ledger.policy_version(), kThreads * kMarks);
  ledger.Acknowledge(kThreads * kMarks - 1);
  EXPECT_TRUE(ledger.is_stale());
}

}  // namespace
}  // namespace weight_sync
