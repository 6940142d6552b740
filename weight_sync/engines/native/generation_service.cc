// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/engines/native/generation_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "weight_sync/engines/native/protocol.h"

namespace weight_sync::native {

GenerationService::GenerationService(Generation* engine)
    : engine_(engine), thread_([this] { Loop(); }) {}

GenerationService::~GenerationService() {
  PeerGone(absl::AbortedError("the engine is shutting down"));
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void GenerationService::Handle(wire::RpcRequest request, wire::RpcResponder responder) {
  absl::MutexLock lock(&mutex_);
  tasks_.emplace_back(std::move(request), std::move(responder));
}

void GenerationService::PeerGone(const absl::Status& why) {
  std::deque<Task> dropped;  // destroyed, and so answered, outside the lock
  absl::MutexLock lock(&mutex_);
  dropped.swap(tasks_);
  if (running_ != nullptr) running_->Cancel(why.ok() ? absl::AbortedError("the trainer left") : why);
}

void GenerationService::Loop() {
  const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !tasks_.empty();
  };
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&woken));
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task.second.Reply(Run(task.first));
  }
}

absl::StatusOr<wire::RpcReply> GenerationService::Run(const wire::RpcRequest& request) {
  WS_ASSIGN_OR_RETURN(const RequestBody body, RequestFromJson(request.body));
  base::CancelScope scope(base::Deadline::After(absl::Milliseconds(body.timeout_ms)));
  {
    absl::MutexLock lock(&mutex_);
    running_ = &scope;
  }
  const auto call = [&]() -> absl::StatusOr<std::string> {
    const std::string& method = request.method;
    if (method == kState) {
      WS_ASSIGN_OR_RETURN(const EngineState state, engine_->State(scope));
      return ToJson(state);
    }
    if (method == kDigests) {
      WS_ASSIGN_OR_RETURN(const std::vector<NamedDigest> digests, engine_->TableDigests(scope));
      return ToJson(digests);
    }
    absl::Status status = absl::UnimplementedError(absl::StrCat("no method '", method, "'"));
    if (method == kBegin) status = engine_->Begin({body.version}, scope);
    if (method == kFinish) status = engine_->Finish(body.version, scope);
    if (method == kResume) status = engine_->Resume(scope);
    if (method == kPrepare) status = engine_->PrepareForGeneration(body.tags, scope);
    if (method == kSleep) status = engine_->Sleep(body.tags, scope);
    WS_RETURN_IF_ERROR(status);
    return std::string();
  };
  absl::StatusOr<std::string> reply = call();
  {
    absl::MutexLock lock(&mutex_);
    running_ = nullptr;
  }
  WS_RETURN_IF_ERROR(reply.status());
  return wire::RpcReply{*std::move(reply), ""};
}

}  // namespace weight_sync::native
