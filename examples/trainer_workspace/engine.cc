// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "engine.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/local_endpoint.h"
#include "base/status_macros.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"

namespace trainer {

namespace ws = ::weight_sync;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(const std::string& endpoint,
                                                      const ws::refit::RefitInfo& tensors) {
  WS_ASSIGN_OR_RETURN(auto claim, ws::base::LocalEndpoint::Claim(endpoint));
  std::unique_ptr<Engine> engine(new Engine(tensors));
  WS_ASSIGN_OR_RETURN(engine->server_,
                      ws::wire::RpcServer::Start(
                          std::move(claim), {{ws::ipc::kServicePrefix, &engine->consumer_},
                                             {ws::native::kServicePrefix, &engine->service_}}));
  return engine;
}

Engine::Engine(const ws::refit::RefitInfo& tensors)
    : tensors_(tensors),
      incarnation_(absl::StrCat(::getpid(), "-", absl::GetCurrentTimeNanos())),
      table_(static_cast<size_t>(tensors.size())) {}

absl::StatusOr<Engine::Answer> Engine::Generate(absl::Span<const float> input) {
  absl::MutexLock lock(&mutex_);
  if (paused_ || dirty_ || !version_.has_value()) {
    return absl::FailedPreconditionError("the engine has no weights to answer from: sync first");
  }
  const auto* weight = reinterpret_cast<const float*>(table_[0].get());
  const auto* bias = reinterpret_cast<const float*>(table_[1].get());
  std::vector<float> output(bias, bias + tensors_[1].shape.num_elements());
  for (float& value : output) {
    for (const float x : input) value += *weight++ * x;
  }
  return Answer{*version_, std::move(output)};
}

// --- A sync, in the order in which it comes ---------------------------------------------------------

absl::Status Engine::Begin(const ws::UpdateOptions& options, const Scope&) {
  absl::MutexLock lock(&mutex_);
  paused_ = true;
  update_ = options.version;
  transfer_ = Transfer::kNone;  // one that is still open has ended without a word
  return absl::OkStatus();
}

absl::Status Engine::BeginUpdate(Version version) {
  absl::MutexLock lock(&mutex_);
  if (update_ != version) {
    return absl::FailedPreconditionError(absl::StrCat("not paused for version ", version));
  }
  transfer_ = Transfer::kOpen;
  return absl::OkStatus();
}

absl::Status Engine::LoadTensor(int tensor, std::unique_ptr<std::byte[]> bytes) {
  absl::MutexLock lock(&mutex_);
  dirty_ = true;
  table_[static_cast<size_t>(tensor)] = std::move(bytes);
  return absl::OkStatus();
}

absl::Status Engine::EndUpdate(Version) {
  absl::MutexLock lock(&mutex_);
  transfer_ = Transfer::kComplete;
  return absl::OkStatus();
}

void Engine::AbortUpdate(const absl::Status&) {
  absl::MutexLock lock(&mutex_);
  // Of a transfer that is published already it concerns nothing, and may come after the next Begin.
  if (transfer_ == Transfer::kNone) return;
  transfer_ = Transfer::kNone;
  update_.reset();
}

absl::Status Engine::Finish(Version version, const Scope&) {
  absl::MutexLock lock(&mutex_);
  if (update_ != version || transfer_ != Transfer::kComplete) {
    return absl::FailedPreconditionError(absl::StrCat("version ", version, " is not complete"));
  }
  version_ = version;
  dirty_ = false;
  update_.reset();
  transfer_ = Transfer::kNone;
  return absl::OkStatus();
}

absl::Status Engine::Resume(const Scope&) {
  absl::MutexLock lock(&mutex_);
  if (dirty_) return absl::FailedPreconditionError("mixed weights: a full sync first");
  update_.reset();
  paused_ = false;
  return absl::OkStatus();
}

// --- The rest ---------------------------------------------------------------------------------------

absl::Status Engine::PrepareForGeneration(absl::Span<const ws::MemoryTag>, const Scope&) {
  return absl::OkStatus();  // it is always awake
}

absl::Status Engine::Sleep(absl::Span<const ws::MemoryTag>, const Scope&) {
  return absl::UnimplementedError("this engine does not give up its memory");
}

absl::StatusOr<ws::EngineState> Engine::State(const Scope&) {
  absl::MutexLock lock(&mutex_);
  ws::EngineState state;
  state.version = version_;
  state.paused = paused_;
  state.dirty = dirty_;
  state.awake.assign(std::begin(ws::kAllTags), std::end(ws::kAllTags));
  state.incarnation = incarnation_;
  return state;
}

absl::StatusOr<std::vector<ws::NamedDigest>> Engine::TableDigests(const Scope&) {
  absl::MutexLock lock(&mutex_);
  std::vector<ws::NamedDigest> digests;
  for (int t = 0; t < tensors_.size(); ++t) {
    const auto& [name, shape, dtype] = tensors_[t];
    const std::byte* bytes = table_[static_cast<size_t>(t)].get();
    if (bytes == nullptr) return absl::FailedPreconditionError("no weights yet: sync first");
    digests.push_back({name, ws::refit::TensorDigest(
                                 name, ws::refit::TensorView::Contiguous(bytes, dtype, shape))});
  }
  return digests;
}

}  // namespace trainer
