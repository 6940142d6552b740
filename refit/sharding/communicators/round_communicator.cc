// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/round_communicator.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {

std::string Name(const Call& call) {
  switch (call.kind) {
    case FrameKind::kBegin:
      return absl::StrCat("BeginRound(tag ", call.tag, ")");
    case FrameKind::kMessage:
      return absl::StrCat("Gather(tag ", call.tag, ")");
    case FrameKind::kBroadcast:
      return absl::StrCat("Broadcast(tag ", call.tag, ")");
    default:
      return absl::StrCat("EndRound of round ", call.tag);
  }
}

absl::Status RoundCommunicator::Enter(const Call& call, const absl::Status& mine,
                                      const base::CancelScope& scope) {
  FlushNow();
  if (!lost_.ok()) return lost_;
  const bool begins = call.kind == FrameKind::kBegin;
  if (phase_ == Phase::kFailed && !begins) return failure_;
  if (begins == (phase_ == Phase::kOpen)) {
    // Between rounds it is the next one that fails: it is where the others will be.
    if (phase_ == Phase::kBetween) ++round_;
    return Fail(absl::FailedPreconditionError(absl::StrCat(
                    "rank ", rank_, " called ", Name(call), " where ",
                    begins ? absl::StrCat("the EndRound of round ", round_tag_) : "a BeginRound",
                    " was due")),
                /*shared=*/true);
  }
  if (begins) {
    ++round_;
    round_tag_ = call.tag;
    phase_ = Phase::kOpen;
  }
  const absl::Status known = mine.ok() ? scope.Check(Name(call)) : mine;
  return known.ok() ? known : Fail(known);
}

absl::Status RoundCommunicator::BeginRound(int64_t tag, const absl::Status& mine,
                                           const base::CancelScope& scope) {
  const Call call{FrameKind::kBegin, tag};
  WS_RETURN_IF_ERROR(Enter(call, mine, scope));
  return DoBegin(call, scope);
}

absl::Status RoundCommunicator::CheckSizes(absl::Span<const int64_t> sizes) const {
  if (sizes.size() != static_cast<size_t>(size_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sizes of ", sizes.size(), " messages for ", size_, " ranks"));
  }
  for (size_t r = 0; r < sizes.size(); ++r) {
    if (sizes[r] < 0 || (r == 0 && sizes[r] != 0)) {
      return absl::InvalidArgumentError(absl::StrCat("a message of ", sizes[r], " bytes of rank ",
                                                     r, r == 0 ? ", which gathers" : ""));
    }
  }
  return absl::OkStatus();
}

absl::Status RoundCommunicator::Gather(int64_t tag, absl::Span<const int64_t> sizes, Write write,
                                       Read read, const base::CancelScope& scope) {
  const Call call{FrameKind::kMessage, tag};
  WS_RETURN_IF_ERROR(Enter(call, absl::OkStatus(), scope));
  const absl::Status valid = base::Prefixed(Name(call), CheckSizes(sizes));
  if (!valid.ok()) return Fail(valid);
  return DoGather(call, sizes, write, read, scope);
}

absl::StatusOr<int64_t> RoundCommunicator::Broadcast(int64_t tag, int64_t value,
                                                     const base::CancelScope& scope) {
  const Call call{FrameKind::kBroadcast, tag};
  WS_RETURN_IF_ERROR(Enter(call, absl::OkStatus(), scope));
  return DoBroadcast(call, value, scope);
}

absl::Status RoundCommunicator::EndRound(const absl::Status& mine, const base::CancelScope& scope) {
  const Call call{FrameKind::kEnd, round_tag_};
  WS_RETURN_IF_ERROR(Enter(call, mine, scope));
  WS_RETURN_IF_ERROR(DoEnd(call, scope));
  phase_ = Phase::kBetween;
  return absl::OkStatus();
}

absl::Status RoundCommunicator::Fail(const absl::Status& mine, bool shared) {
  phase_ = Phase::kFailed;
  failure_ = mine;
  Tell(StatusFrame(FrameKind::kFail, round_, shared ? -1 : rank_, mine));
  return failure_;
}

absl::Status RoundCommunicator::FailedBy(const Frame& frame) {
  phase_ = Phase::kFailed;
  failure_ = StatusOf(frame);
  return failure_;
}

absl::Status RoundCommunicator::Lose(const absl::Status& why) {
  phase_ = Phase::kFailed;
  failure_ = why;
  lost_ = why;
  Tell(StatusFrame(FrameKind::kLost, round_, -1, why));
  return lost_;
}

absl::Status RoundCommunicator::Mismatch(int other, absl::string_view its_call,
                                         absl::string_view my_call) {
  return Fail(absl::FailedPreconditionError(absl::StrCat(
                  "rank ", other, " called ", its_call, " where rank ", rank_, " called ", my_call,
                  ": all ranks make the same calls in the same order")),
              /*shared=*/true);
}

}  // namespace weight_sync::refit
