// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/engines/native/native_generation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::native {

absl::StatusOr<std::string> NativeGeneration::Call(const char* method, RequestBody body,
                                                   const base::CancelScope& scope) {
  if (client_ == nullptr || !client_->connected()) {
    awake_.clear();
    client_.reset();
    WS_ASSIGN_OR_RETURN(client_, wire::RpcClient::Connect(endpoint_, "engine", scope));
  }
  body.timeout_ms = scope.deadline().remaining_ms();
  WS_ASSIGN_OR_RETURN(wire::RpcReply reply,
                      client_->Call(absl::StrCat(kServicePrefix, method), ToJson(body), "", scope));
  return std::move(reply.body);
}

bool NativeGeneration::IsAwake(MemoryTag tag) const {
  return client_ != nullptr && client_->connected() &&
         std::find(awake_.begin(), awake_.end(), tag) != awake_.end();
}

absl::Status NativeGeneration::Begin(const UpdateOptions& options, const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  return Call(kBegin, {0, options.version, {}}, scope).status();
}

absl::Status NativeGeneration::Finish(Version version, const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  return Call(kFinish, {0, version, {}}, scope).status();
}

absl::Status NativeGeneration::Resume(const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  return Call(kResume, {}, scope).status();
}

absl::Status NativeGeneration::PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                                    const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  std::vector<MemoryTag> asleep;
  for (const MemoryTag tag : tags) {
    if (!IsAwake(tag)) asleep.push_back(tag);
  }
  if (asleep.empty()) return absl::OkStatus();
  WS_RETURN_IF_ERROR(Call(kPrepare, {0, 0, asleep}, scope).status());
  awake_.insert(awake_.end(), asleep.begin(), asleep.end());
  return absl::OkStatus();
}

absl::Status NativeGeneration::Sleep(absl::Span<const MemoryTag> tags,
                                     const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  // Forgotten first: after an error they may be awake or asleep.
  for (const MemoryTag tag : tags) {
    awake_.erase(std::remove(awake_.begin(), awake_.end(), tag), awake_.end());
  }
  return Call(kSleep, {0, 0, {tags.begin(), tags.end()}}, scope).status();
}

absl::StatusOr<EngineState> NativeGeneration::State(const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  WS_ASSIGN_OR_RETURN(const std::string reply, Call(kState, {}, scope));
  return StateFromJson(reply);
}

absl::StatusOr<std::vector<NamedDigest>> NativeGeneration::TableDigests(
    const base::CancelScope& scope) {
  absl::MutexLock lock(&mutex_);
  WS_ASSIGN_OR_RETURN(const std::string reply, Call(kDigests, {}, scope));
  return DigestsFromJson(reply);
}

}  // namespace weight_sync::native
