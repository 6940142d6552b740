// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// VersionLedger: which version the policy is at, and which one the engine answers with. A mark
// advances the policy; a sync that succeeded acknowledges the version that it read at its start, so
// a mark during a sync leaves the engine stale. All methods are thread-safe and lock-free;
// is_stale() is two loads.
//
//   VersionLedger ledger(/*policy_version=*/0, /*engine_version=*/std::nullopt);   // stale
//   ledger.MarkStale();                                // policy at 1
//   ledger.Acknowledge(1);                             // fresh
//   ledger.ForgetEngine();                             // a broken sync: stale until a whole one

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_VERSION_LEDGER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_VERSION_LEDGER_H_

#include <atomic>
#include <limits>
#include <optional>

#include "refit/version.h"

namespace weight_sync {

class VersionLedger {
 public:
  VersionLedger(refit::Version policy_version, std::optional<refit::Version> engine_version)
      : policy_(policy_version), engine_(engine_version.value_or(kUnknown)) {}

  void MarkStale() { policy_.fetch_add(1, std::memory_order_acq_rel); }
  bool is_stale() const {
    return policy_.load(std::memory_order_acquire) != engine_.load(std::memory_order_acquire);
  }
  refit::Version policy_version() const { return policy_.load(std::memory_order_acquire); }
  void Acknowledge(refit::Version version) { engine_.store(version, std::memory_order_release); }
  void ForgetEngine() { engine_.store(kUnknown, std::memory_order_release); }

 private:
  // No policy version: those begin at 0 or later (CheckOptions) and only grow.
  static constexpr refit::Version kUnknown = std::numeric_limits<refit::Version>::min();

  std::atomic<refit::Version> policy_;
  std::atomic<refit::Version> engine_;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_VERSION_LEDGER_H_
