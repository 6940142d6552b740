// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/trainer_ranks.h"

#include <cstdint>

#include "base/status_macros.h"

namespace weight_sync {
namespace {

// Of the rounds; a sync's own round has its version, which is not negative.
constexpr int64_t kPrepareTag = -101;
constexpr int64_t kShareTag = -102;
constexpr int64_t kConcludeTag = -103;
// Of what is said in them.
constexpr int64_t kBucketBytesTag = -111;
constexpr int64_t kAlignmentTag = -112;
constexpr int64_t kVersionTag = -113;
constexpr int64_t kNoVersion = -1;

}  // namespace

absl::Status TrainerRanks::Prepare(const absl::Status& mine, const refit::Geometry& geometry,
                                   absl::FunctionRef<absl::Status(const refit::Geometry&)> compile,
                                   const base::CancelScope& scope) const {
  if (!several()) return mine.ok() ? compile(geometry) : mine;
  WS_RETURN_IF_ERROR(communicator_->BeginRound(kPrepareTag, mine, scope));
  refit::Geometry shared;
  WS_ASSIGN_OR_RETURN(shared.bucket_bytes,
                      communicator_->Broadcast(kBucketBytesTag, geometry.bucket_bytes, scope));
  WS_ASSIGN_OR_RETURN(shared.alignment,
                      communicator_->Broadcast(kAlignmentTag, geometry.alignment, scope));
  return communicator_->EndRound(compile(shared), scope);
}

absl::StatusOr<std::optional<refit::Version>> TrainerRanks::Share(
    const absl::Status& mine, std::optional<refit::Version> version,
    const base::CancelScope& scope) const {
  if (!several()) {
    WS_RETURN_IF_ERROR(mine);
    return version;
  }
  WS_RETURN_IF_ERROR(communicator_->BeginRound(kShareTag, mine, scope));
  WS_ASSIGN_OR_RETURN(const int64_t shared,
                      communicator_->Broadcast(kVersionTag, version.value_or(kNoVersion), scope));
  WS_RETURN_IF_ERROR(communicator_->EndRound(absl::OkStatus(), scope));
  return shared == kNoVersion ? std::nullopt : std::optional<refit::Version>(shared);
}

absl::Status TrainerRanks::Conclude(const absl::Status& mine,
                                    const base::CancelScope& scope) const {
  if (!several()) return mine;
  WS_RETURN_IF_ERROR(communicator_->BeginRound(kConcludeTag, mine, scope));
  return communicator_->EndRound(absl::OkStatus(), scope);
}

}  // namespace weight_sync
