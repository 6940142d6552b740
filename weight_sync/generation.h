// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Generation: an inference engine, or a fleet of them as one, as the trainer's side drives it
// around a transfer. Pause, publish, cache reset and resume belong here, on every transport; bytes
// go over a Link.
//
// The order that the driver keeps: Begin, (bytes), Finish, Resume. An engine that may hold new
// bytes and did not finish is dirty: it stays paused, and refuses Resume and generation with
// FailedPrecondition until an update that began after that has finished. Begin on a dirty or paused
// engine closes what is open and starts anew.
//
// Errors: Unavailable when the engine is gone, FailedPrecondition for a wrong state, and the
// engine's own. Calls are one at a time unless an implementation says more.
//
//   WS_RETURN_IF_ERROR(generation.Begin({.version = 7}, scope));      // paused from here
//   ... every byte of version 7 ...
//   WS_RETURN_IF_ERROR(generation.Finish(7, scope));                  // published
//   WS_RETURN_IF_ERROR(generation.Resume(scope));
//   WS_RETURN_IF_ERROR(generation.PrepareForGeneration(kAllTags, scope));   // awake already: no-op

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_GENERATION_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "refit/version.h"

namespace weight_sync {

using refit::Version;

struct UpdateOptions {
  Version version = 0;
};

// Parts of an engine's memory that sleep and wake separately, as vLLM and SGLang tag them.
enum class MemoryTag : uint8_t { kWeights, kKvCache };
inline constexpr MemoryTag kAllTags[] = {MemoryTag::kWeights, MemoryTag::kKvCache};
absl::string_view MemoryTagName(MemoryTag tag);  // "weights", "kv_cache"

struct EngineState {
  // The version whose weights the engine answers with; none before its first sync.
  std::optional<Version> version;
  bool paused = false;
  bool dirty = false;
  std::vector<MemoryTag> awake;
  // Chosen by the engine when it starts: another one after a restart.
  std::string incarnation;
};

struct NamedDigest {
  std::string name;
  base::Digest128 digest;
};

class Generation {
 public:
  virtual ~Generation() = default;

  // Stops answering, and opens an update. Nothing answers from the weights that follow until
  // Resume() has succeeded.
  virtual absl::Status Begin(const UpdateOptions& options, const base::CancelScope& scope) = 0;

  // Publishes the version that the open update brought, and drops caches of the one before.
  virtual absl::Status Finish(Version version, const base::CancelScope& scope) = 0;

  // Answers again. Also ends an update that brought no byte.
  virtual absl::Status Resume(const base::CancelScope& scope) = 0;

  // Wakes what sleeps of `tags`; what is awake is left alone.
  virtual absl::Status PrepareForGeneration(absl::Span<const MemoryTag> tags,
                                            const base::CancelScope& scope) = 0;

  // Frees the memory of `tags`. An engine whose weights have slept has none until a full sync.
  virtual absl::Status Sleep(absl::Span<const MemoryTag> tags, const base::CancelScope& scope) = 0;

  virtual absl::StatusOr<EngineState> State(const base::CancelScope& scope) = 0;

  // refit::TensorDigest of every tensor in the engine's own table as it is now. Unimplemented says
  // why an engine cannot tell, which deep verification never counts as equal.
  virtual absl::StatusOr<std::vector<NamedDigest>> TableDigests(const base::CancelScope& scope) = 0;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_GENERATION_H_
