// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/sync_pair.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "fakes/answer_service.h"
#include "fakes/checks_for_testing.h"
#include "fakes/fake_engine.h"
#include "refit/packing/packer.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::benchmarks {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(1);

}  // namespace

absl::StatusOr<std::unique_ptr<SyncPair>> SyncPair::Start(const refit::RefitInfo& info,
                                                          int engine_core) {
  std::unique_ptr<SyncPair> pair(new SyncPair);
  WS_ASSIGN_OR_RETURN(pair->policy_, fakes::SeededPolicy::Create(info, /*seed=*/3));
  const std::string endpoint = pair->directory_.endpoint();
  WS_ASSIGN_OR_RETURN(
      fakes::EngineProcess engine,
      fakes::EngineProcess::Start({endpoint, info, /*faults=*/{}, /*slot_bytes=*/0, engine_core}));
  pair->engine_ = std::make_unique<fakes::EngineProcess>(std::move(engine));
  pair->generation_ = std::make_unique<native::NativeGeneration>(endpoint);
  return pair;
}

absl::Status SyncPair::Connect(const ipc::RingLayout& ring) {
  const base::CancelScope scope(base::Deadline::After(kTimeout));
  link_ = std::make_unique<ipc::IpcLink>(directory_.endpoint(), ring);
  refit::RefitSource& source = policy_->source();
  WS_ASSIGN_OR_RETURN(const refit::Geometry geometry, link_->Hello(source.info(), scope));
  WS_ASSIGN_OR_RETURN(buckets_, refit::Pack(source.info(), geometry));
  plan_ = refit::PlanDigest(buckets_);
  WS_ASSIGN_OR_RETURN(program_, source.Compile(buckets_));
  return absl::OkStatus();
}

absl::StatusOr<double> SyncPair::Sync(bool wire_digests) {
  base::CancelScope scope(base::Deadline::After(kTimeout));
  SyncJob job;
  job.source = &policy_->source();
  job.program = program_.get();
  job.buckets = buckets_;
  job.plan = plan_;
  job.link = link_.get();
  job.generation = generation_.get();
  job.version = ++version_;
  job.checks = ChecksForTesting::Make(wire_digests, /*read_guard=*/true);
  job.cleanup_timeout = kTimeout;
  const SyncResult result = RunSync(job, scope, digests_);
  WS_RETURN_IF_ERROR(result.status);
  return result.report.seconds;
}

absl::Status SyncPair::Verify() {
  const base::CancelScope scope(base::Deadline::After(kTimeout));
  WS_ASSIGN_OR_RETURN(const auto client,
                      wire::RpcClient::Connect(directory_.endpoint(), "engine", scope));
  WS_ASSIGN_OR_RETURN(const fakes::FakeEngine::Reply answer, fakes::AskForAnswer(*client, scope));
  if (answer.version != version_) {
    return absl::DataLossError(
        absl::StrCat("the engine answers with version ", answer.version, ", not ", version_));
  }
  if (answer.weights != fakes::AnswerDigest(policy_->parameters())) {
    return absl::DataLossError(absl::StrCat(
        "the engine's table differs from the trainer's parameters at version ", version_));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::benchmarks
