// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/ipc_weight_synchronizer.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/packing/packer.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/sync_driver.h"

namespace weight_sync::ipc {
namespace {

constexpr MemoryTag kWeights[] = {MemoryTag::kWeights};
constexpr MemoryTag kKvCache[] = {MemoryTag::kKvCache};

}  // namespace

IpcWeightSynchronizer::IpcWeightSynchronizer(const SynchronizerOptions& options, Policy* policy,
                                             Generation* generation, std::unique_ptr<Link> link)
    : options_(options),
      policy_(policy),
      generation_(generation),
      ledger_(options.policy_version, std::nullopt),
      link_(std::move(link)) {
  if (link_ == nullptr) {
    link_ = std::make_unique<IpcLink>(options.endpoint,
                                      RingLayout{options.ring_slots, options.ring_slot_bytes});
  }
}

IpcWeightSynchronizer::~IpcWeightSynchronizer() { Shutdown().IgnoreError(); }

absl::Status IpcWeightSynchronizer::Enter(State needed, const char* what,
                                          base::CancelScope* scope) {
  absl::MutexLock lock(&mutex_);
  if (state_ == State::kShutDown) {
    return absl::FailedPreconditionError(absl::StrCat(what, " after Shutdown"));
  }
  if (active_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(what, " while another call runs"));
  }
  if (state_ != needed) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, needed == State::kNew ? " was called before" : " before InitCommunicator"));
  }
  active_ = scope;
  return absl::OkStatus();
}

void IpcWeightSynchronizer::Leave(State next) {
  absl::MutexLock lock(&mutex_);
  active_ = nullptr;
  if (state_ != State::kShutDown) state_ = next;
}

absl::Status IpcWeightSynchronizer::InitCommunicator() {
  base::CancelScope scope(base::Deadline::After(options_.connect_timeout));
  WS_RETURN_IF_ERROR(Enter(State::kNew, "InitCommunicator", &scope));
  absl::Status status = Connect(scope);
  if (status.ok() && options_.engine_version.has_value()) {
    // What the trainer was told counts if the engine says so too.
    absl::StatusOr<EngineState> state = generation_->State(scope);
    status = state.status();
    if (state.ok() && !state->dirty && !state->paused &&
        state->version == options_.engine_version) {
      ledger_.Acknowledge(*options_.engine_version);
    }
  }
  Leave(status.ok() ? State::kReady : State::kNew);
  return status;
}

absl::Status IpcWeightSynchronizer::Connect(const base::CancelScope& scope) {
  const base::CancelScope connecting(scope, options_.connect_timeout);
  refit::RefitSource& source = policy_->source();
  WS_ASSIGN_OR_RETURN(const refit::Geometry geometry, link_->Hello(source.info(), connecting));
  WS_ASSIGN_OR_RETURN(buckets_, refit::Pack(source.info(), geometry));
  plan_ = refit::PlanDigest(buckets_);
  WS_ASSIGN_OR_RETURN(program_, source.Compile(buckets_));
  return absl::OkStatus();
}

absl::StatusOr<SyncReport> IpcWeightSynchronizer::SyncWeights() {
  const auto start = std::chrono::steady_clock::now();
  base::CancelScope scope(base::Deadline::After(options_.sync_timeout));
  WS_RETURN_IF_ERROR(Enter(State::kReady, "SyncWeights", &scope));
  absl::StatusOr<SyncReport> report = Sync(scope);
  Leave(State::kReady);
  if (report.ok()) {
    report->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return report;
}

absl::StatusOr<SyncReport> IpcWeightSynchronizer::Sync(base::CancelScope& scope) {
  SyncJob job;
  if (!link_->connected()) {
    ledger_.ForgetEngine();
    WS_RETURN_IF_ERROR(Connect(scope));
  }
  job.source = &policy_->source();
  job.program = program_.get();
  job.buckets = buckets_;
  job.plan = plan_;
  job.link = link_.get();
  job.generation = generation_;
  job.checks = options_.checks;
  job.verify =
      options_.deep_verification_every > 0 && syncs_ % options_.deep_verification_every == 0;
  job.cleanup_timeout = options_.cleanup_timeout;
  bool offloaded = true;
  const auto end_offload = [&] {
    return std::exchange(offloaded, false) ? policy_->OffloadAfterRefit() : absl::OkStatus();
  };
  job.before_resume = [&] {
    WS_RETURN_IF_ERROR(base::Prefixed("policy's OffloadAfterRefit", end_offload()));
    return base::Prefixed("waking the engine's KV cache",
                          generation_->PrepareForGeneration(kKvCache, scope));
  };

  absl::Status status =
      base::Prefixed("policy's OffloadBeforeRefit", policy_->OffloadBeforeRefit());
  if (status.ok()) {
    status = base::Prefixed("waking the engine's weights",
                            generation_->PrepareForGeneration(kWeights, scope));
  }
  SyncResult result;
  if (status.ok()) {
    // Not before all that waits: a step and its mark may come while it does, and take part.
    job.version = ledger_.policy_version();
    result = RunSync(job, scope, digests_);
    status = result.status;
    if (result.bytes_sent) ledger_.ForgetEngine();
  }
  if (!status.ok()) {
    if (absl::IsUnavailable(status)) ledger_.ForgetEngine();  // what answers next may be another
    const absl::Status undone = end_offload();
    if (undone.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(status.message(),
                                     "; then the policy's OffloadAfterRefit: ", undone.message()));
  }
  ++syncs_;
  ledger_.Acknowledge(job.version);
  return std::move(result.report);
}

absl::Status IpcWeightSynchronizer::Shutdown() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return active_ == nullptr; };
  absl::MutexLock lock(&mutex_);
  state_ = State::kShutDown;
  if (active_ != nullptr) active_->Cancel(absl::AbortedError("the synchronizer was shut down"));
  // Bounded by the deadlines of the call that runs.
  mutex_.Await(absl::Condition(&idle));
  link_.reset();
  program_.reset();
  return absl::OkStatus();
}

}  // namespace weight_sync::ipc
