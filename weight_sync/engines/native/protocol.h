// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The control messages of engines built with this library, carried by weight_sync/wire/rpc.h with
// JSON bodies. Every request has "timeout_ms", what is left of the caller's deadline.
//
//   begin    version          finish  version        resume
//   prepare  tags             sleep   tags
//   state    -> version (or null), paused, dirty, awake, incarnation
//   digests  -> {name: digest}

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_PROTOCOL_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_PROTOCOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weight_sync/generation.h"

namespace weight_sync::native {

inline constexpr char kServicePrefix[] = "engine.";
inline constexpr char kBegin[] = "begin";
inline constexpr char kFinish[] = "finish";
inline constexpr char kResume[] = "resume";
inline constexpr char kPrepare[] = "prepare";
inline constexpr char kSleep[] = "sleep";
inline constexpr char kState[] = "state";
inline constexpr char kDigests[] = "digests";

// One request of any kind: a field that the method does not use stays empty.
struct RequestBody {
  int64_t timeout_ms = 0;
  Version version = 0;
  std::vector<MemoryTag> tags;
};

std::string ToJson(const RequestBody& body);
std::string ToJson(const EngineState& state);
std::string ToJson(absl::Span<const NamedDigest> digests);

// InvalidArgument when a field is missing or of another type.
absl::StatusOr<RequestBody> RequestFromJson(absl::string_view text);
absl::StatusOr<EngineState> StateFromJson(absl::string_view text);
absl::StatusOr<std::vector<NamedDigest>> DigestsFromJson(absl::string_view text);

}  // namespace weight_sync::native

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_ENGINES_NATIVE_PROTOCOL_H_
