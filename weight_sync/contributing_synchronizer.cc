// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/contributing_synchronizer.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/contribute.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "weight_sync/seconds_since.h"

namespace weight_sync {
namespace {

constexpr char kAfterwards[] = "the policy's OffloadAfterRefit";

}  // namespace

ContributingSynchronizer::ContributingSynchronizer(const SynchronizerOptions& options,
                                                   Policy* policy,
                                                   refit::Communicator* communicator)
    : options_(options),
      policy_(policy),
      ranks_(communicator),
      ledger_(options.policy_version, std::nullopt) {}

ContributingSynchronizer::~ContributingSynchronizer() { Shutdown().IgnoreError(); }

absl::Status ContributingSynchronizer::InitCommunicator() {
  // Rank 0's own limit, and time to hear of it.
  base::CancelScope scope(
      base::Deadline::After(options_.connect_timeout + options_.cleanup_timeout));
  WS_RETURN_IF_ERROR(gate_.Enter(CallGate::State::kNew, "InitCommunicator", &scope));
  const absl::Status status = Init(scope);
  gate_.Leave(status.ok() ? CallGate::State::kReady : CallGate::State::kNew);
  return status;
}

absl::Status ContributingSynchronizer::Init(const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(Prepare(absl::OkStatus(), scope));
  WS_ASSIGN_OR_RETURN(const std::optional<refit::Version> engine_version,
                      ranks_.Share(absl::OkStatus(), std::nullopt, scope));
  if (engine_version.has_value()) ledger_.Acknowledge(*engine_version);
  return absl::OkStatus();
}

absl::Status ContributingSynchronizer::Prepare(const absl::Status& mine,
                                               const base::CancelScope& scope) {
  const auto compile = [this](const refit::Geometry& geometry) {
    return refit_.CompileFor(policy_->source(), geometry);
  };
  return ranks_.Prepare(mine, /*geometry=*/{}, compile, scope);
}

absl::StatusOr<SyncReport> ContributingSynchronizer::SyncWeights() {
  const SyncClock::time_point start = SyncClock::now();
  // Rank 0's own limit, what it does after one that failed, and time to hear of it.
  base::CancelScope scope(
      base::Deadline::After(options_.sync_timeout + 2 * options_.cleanup_timeout));
  WS_RETURN_IF_ERROR(gate_.Enter(CallGate::State::kReady, "SyncWeights", &scope));
  absl::StatusOr<SyncReport> report = Sync(scope);
  if (report.ok()) {
    ledger_.Acknowledge(report->version);
    report->seconds = SecondsSince(start);
  } else {
    ledger_.ForgetEngine();
  }
  gate_.Leave(CallGate::State::kReady);
  return report;
}

absl::StatusOr<SyncReport> ContributingSynchronizer::Sync(const base::CancelScope& scope) {
  absl::Status status =
      base::Prefixed("policy's OffloadBeforeRefit", policy_->OffloadBeforeRefit());
  status = Prepare(status, scope);
  SyncReport report;
  const bool prepared = status.ok();
  if (prepared) status = Contribute(scope, report);
  const absl::Status undone = policy_->OffloadAfterRefit();
  if (prepared) {
    // Whatever failed, it failed on rank 0 too, which says why.
    const absl::Status concluded = ranks_.Conclude(base::Prefixed(kAfterwards, undone), scope);
    if (!concluded.ok() && undone.ok()) status = concluded;
  }
  WS_RETURN_IF_ERROR(base::Then(status, kAfterwards, undone));
  return report;
}

absl::Status ContributingSynchronizer::Contribute(const base::CancelScope& scope,
                                                  SyncReport& report) {
  const refit::RefitInfo& info = policy_->source().info();
  report.version = ledger_.policy_version();
  report.tensors = info.size();
  report.bytes = info.total_bytes();
  report.buckets = static_cast<int64_t>(refit_.buckets().size());
  const SyncClock::time_point start = SyncClock::now();
  bool blocks_trainer = true;
  const absl::Status contributed =
      refit::Contribute(refit_.program(), refit_.buckets().size(), report.version, scope,
                        [&](const refit::ReadGuard& guard) {
                          blocks_trainer = guard.blocks_trainer();
                          report.trainer_blocked_seconds = SecondsSince(start);
                        });
  if (blocks_trainer) report.trainer_blocked_seconds = SecondsSince(start);
  return base::Prefixed(absl::StrCat("sync of version ", report.version), contributed);
}

absl::Status ContributingSynchronizer::Shutdown() {
  gate_.ShutDown();
  refit_ = CompiledRefit();
  return absl::OkStatus();
}

}  // namespace weight_sync
