// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/engines/native/generation_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

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
  if (running_ != nullptr)
    running_->Cancel(why.ok() ? absl::AbortedError("the trainer left") : why);
}

void GenerationService::Loop() {
  const auto woken = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !tasks_.empty(); };
  for (;;) {
    Task task;
    absl::StatusOr<RequestBody> body;
    std::optional<base::CancelScope> scope;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&woken));
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      body = RequestFromJson(task.first.body);
      if (body.ok()) {
        // In one step with the removal from the queue: PeerGone finds a call here or there.
        scope.emplace(base::Deadline::After(absl::Milliseconds(body->timeout_ms)));
        running_ = &*scope;
      }
    }
    if (!body.ok()) {
      task.second.Reply(body.status());
      continue;
    }
    absl::StatusOr<wire::RpcReply> reply = Run(task.first.method, *body, *scope);
    {
      absl::MutexLock lock(&mutex_);
      running_ = nullptr;
    }
    scope.reset();  // what a call holds is given back before it is answered
    task.second.Reply(std::move(reply));
  }
}

absl::StatusOr<wire::RpcReply> GenerationService::Run(const std::string& method,
                                                      const RequestBody& body,
                                                      const base::CancelScope& scope) {
  const auto call = [&]() -> absl::StatusOr<std::string> {
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
  WS_ASSIGN_OR_RETURN(std::string reply, call());
  return wire::RpcReply{std::move(reply), ""};
}

}  // namespace weight_sync::native
