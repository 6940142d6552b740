// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NativeGeneration: a Generation that drives an engine built with this library, in another process
// of this machine, over its unix socket. The far end is GenerationService.
//
// It connects at the first call, and anew after the engine was restarted. PrepareForGeneration is a
// no-op, without a message, for tags that are known to be awake. Thread-safe.
//
//   native::NativeGeneration generation(base::DefaultEndpointPath("job-7", "engine-0"));
//   WS_ASSIGN_OR_RETURN(EngineState state, generation.State(scope));

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_NATIVE_GENERATION_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_NATIVE_GENERATION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "weight_sync/engines/native/protocol.h"
#include "weight_sync/generation.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::native {

class NativeGeneration : public Generation {
 public:
  explicit NativeGeneration(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  absl::Status Begin(const UpdateOptions& options, const base::CancelScope& scope) override;
  absl::Status Finish(Version version, const base::CancelScope& scope) override;
  absl::Status Resume(const base::CancelScope& scope) override;
  absl::Status PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                    const base::CancelScope& scope) override;
  absl::Status Sleep(absl::Span<const MemoryTag> tags, const base::CancelScope& scope) override;
  absl::StatusOr<EngineState> State(const base::CancelScope& scope) override;
  absl::StatusOr<std::vector<NamedDigest>> TableDigests(const base::CancelScope& scope) override;

 private:
  absl::StatusOr<std::string> Call(const char* method, RequestBody body,
                                   const base::CancelScope& scope)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAwake(MemoryTag tag) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string endpoint_;
  absl::Mutex mutex_;
  std::unique_ptr<wire::RpcClient> client_ ABSL_GUARDED_BY(mutex_);
  std::vector<MemoryTag> awake_ ABSL_GUARDED_BY(mutex_);  // of this connection's engine
};

}  // namespace weight_sync::native

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_NATIVE_GENERATION_H_
