// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/ipc_weight_synchronizer.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/seconds_since.h"
#include "weight_sync/sync_driver.h"

namespace weight_sync::ipc {
namespace {

constexpr MemoryTag kWeights[] = {MemoryTag::kWeights};
constexpr MemoryTag kKvCache[] = {MemoryTag::kKvCache};
constexpr char kAfterwards[] = "the policy's OffloadAfterRefit";

}  // namespace

IpcWeightSynchronizer::IpcWeightSynchronizer(const SynchronizerOptions& options, Policy* policy,
                                             Generation* generation, std::unique_ptr<Link> link,
                                             refit::Communicator* communicator)
    : options_(options),
      policy_(policy),
      generation_(generation),
      ranks_(communicator),
      ledger_(options.policy_version, std::nullopt),
      link_(std::move(link)) {
  if (link_ == nullptr) {
    link_ = std::make_unique<IpcLink>(options.endpoint,
                                      RingLayout{options.ring_slots, options.ring_slot_bytes});
  }
}

IpcWeightSynchronizer::~IpcWeightSynchronizer() { Shutdown().IgnoreError(); }

absl::Status IpcWeightSynchronizer::InitCommunicator() {
  base::CancelScope scope(base::Deadline::After(options_.connect_timeout));
  WS_RETURN_IF_ERROR(gate_.Enter(CallGate::State::kNew, "InitCommunicator", &scope));
  const absl::Status status = Init(scope);
  gate_.Leave(status.ok() ? CallGate::State::kReady : CallGate::State::kNew);
  return status;
}

absl::Status IpcWeightSynchronizer::Init(const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(Prepare(Connect(scope), scope));
  std::optional<Version> confirmed;
  absl::Status status;
  if (options_.engine_version.has_value()) {
    // What the trainer was told counts if the engine says so too.
    const absl::StatusOr<EngineState> state = generation_->State(scope);
    status = state.status();
    if (state.ok() && !state->dirty && !state->paused &&
        state->version == options_.engine_version) {
      confirmed = options_.engine_version;
    }
  }
  WS_RETURN_IF_ERROR(ranks_.Share(status, confirmed, scope).status());
  if (confirmed.has_value()) ledger_.Acknowledge(*confirmed);
  return absl::OkStatus();
}

absl::Status IpcWeightSynchronizer::Connect(const base::CancelScope& scope) {
  const base::CancelScope connecting(scope, options_.connect_timeout);
  WS_ASSIGN_OR_RETURN(geometry_, link_->Hello(policy_->source().info(), connecting));
  return absl::OkStatus();
}

absl::Status IpcWeightSynchronizer::Prepare(const absl::Status& mine,
                                            const base::CancelScope& scope) {
  const auto compile = [this](const refit::Geometry& geometry) {
    return refit_.CompileFor(policy_->source(), geometry);
  };
  return ranks_.Prepare(mine, geometry_, compile, scope);
}

absl::Status IpcWeightSynchronizer::Conclude(const absl::Status& mine) {
  // Also after a sync that took all its time.
  const base::CancelScope scope(base::Deadline::After(options_.cleanup_timeout));
  const absl::Status concluded = ranks_.Conclude(mine, scope);
  return mine.ok() ? concluded : mine;
}

absl::StatusOr<SyncReport> IpcWeightSynchronizer::SyncWeights() {
  const SyncClock::time_point start = SyncClock::now();
  base::CancelScope scope(base::Deadline::After(options_.sync_timeout));
  WS_RETURN_IF_ERROR(gate_.Enter(CallGate::State::kReady, "SyncWeights", &scope));
  absl::StatusOr<SyncReport> report = Sync(scope);
  gate_.Leave(CallGate::State::kReady);
  if (report.ok()) report->seconds = SecondsSince(start);
  return report;
}

absl::StatusOr<SyncReport> IpcWeightSynchronizer::Sync(base::CancelScope& scope) {
  absl::Status status;
  if (!link_->connected()) {
    ledger_.ForgetEngine();
    status = Connect(scope);
  }
  bool offloaded = status.ok();
  const auto end_offload = [&] {
    return std::exchange(offloaded, false) ? policy_->OffloadAfterRefit() : absl::OkStatus();
  };
  if (status.ok()) {
    status = base::Prefixed("policy's OffloadBeforeRefit", policy_->OffloadBeforeRefit());
  }
  if (status.ok()) {
    status = base::Prefixed("waking the engine's weights",
                            generation_->PrepareForGeneration(kWeights, scope));
  }
  status = Prepare(status, scope);

  SyncJob job;
  SyncResult result;
  if (status.ok()) {
    job.source = &policy_->source();
    job.program = &refit_.program();
    job.buckets = refit_.buckets();
    job.plan = refit_.plan();
    job.link = link_.get();
    job.generation = generation_;
    // Not before all that waits: a step and its mark may come while it does, and take part.
    job.version = ledger_.policy_version();
    job.checks = options_.checks;
    job.verify =
        options_.deep_verification_every > 0 && syncs_ % options_.deep_verification_every == 0;
    job.cleanup_timeout = options_.cleanup_timeout;
    job.before_resume = [&] {
      WS_RETURN_IF_ERROR(base::Prefixed(kAfterwards, end_offload()));
      return base::Prefixed("waking the engine's KV cache",
                            generation_->PrepareForGeneration(kKvCache, scope));
    };
    result = RunSync(job, scope, digests_);
    status = Conclude(result.status);
    if (result.bytes_sent) ledger_.ForgetEngine();
  }
  if (!status.ok()) {
    // What answers next may be another; and whatever a rank knows of a failure, none of them
    // relies on what the engine had before.
    if (absl::IsUnavailable(status) || ranks_.several()) ledger_.ForgetEngine();
    return base::Then(status, kAfterwards, end_offload());
  }
  ++syncs_;
  ledger_.Acknowledge(job.version);
  return std::move(result.report);
}

absl::Status IpcWeightSynchronizer::Shutdown() {
  gate_.ShutDown();
  link_.reset();
  refit_ = CompiledRefit();
  return absl::OkStatus();
}

}  // namespace weight_sync::ipc
