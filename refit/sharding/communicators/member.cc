// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/member.h"

#include <poll.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/sharding/communicators/poll_until.h"

namespace weight_sync::refit {

Member::Member(int rank, int size, RankConnection root, const std::shared_ptr<Segments>& segments)
    : RoundCommunicator(rank, size), root_(std::move(root)) {
  if (segments != nullptr) {
    slots_.emplace(segments);
  } else {
    payload_.emplace(std::move(root_.payload));
  }
}

absl::Status Member::LoseRoot(absl::Status why) {
  root_.socket->Close();
  // An end is a death; anything else is told as it is.
  if (absl::IsUnavailable(why)) {
    why = absl::UnavailableError(absl::StrCat("rank 0 died (", why.message(), ")"));
  }
  return Lose(why);
}

absl::Status Member::ReadFrame(const Frame& frame, const Call& call) {
  switch (frame.kind) {
    case FrameKind::kLost:
      return Lose(StatusOf(frame));
    case FrameKind::kCredit:
      if (slots_.has_value()) slots_->Credit();
      return absl::OkStatus();
    case FrameKind::kMapped:
      if (slots_.has_value()) slots_->Mapped();
      return absl::OkStatus();
    default:
      break;
  }
  if (frame.round < round()) return absl::OkStatus();  // left over
  if (frame.round > round()) {
    return LoseRoot(absl::InternalError(
        absl::StrCat("rank 0 is in its round ", frame.round, ", this rank in its ", round())));
  }
  switch (frame.kind) {
    case FrameKind::kFail:
      return FailedBy(frame);
    case FrameKind::kWaiting:
      rank_0_waits_for_ = frame.text;
      return absl::OkStatus();
    case FrameKind::kBegin:
    case FrameKind::kBroadcast:
    case FrameKind::kEnd:
      // An answer to another call than this: rank 0 will see it in what this rank has said.
      if (frame.kind != call.kind) return absl::OkStatus();
      if (frame.tag != call.tag) return Mismatch(0, Name({frame.kind, frame.tag}), Name(call));
      answer_ = frame.value;
      return absl::OkStatus();
    default:
      return LoseRoot(absl::DataLossError(
          absl::StrCat("rank 0 sent a frame of kind ", static_cast<uint32_t>(frame.kind))));
  }
}

absl::Status Member::ReadFrames(const Call& call) {
  while (!answer_.has_value()) {
    absl::StatusOr<std::optional<Frame>> frame = root_.socket->Receive();
    if (!frame.ok()) return LoseRoot(frame.status());
    if (!frame->has_value()) break;
    WS_RETURN_IF_ERROR(ReadFrame(**frame, call));
  }
  return absl::OkStatus();
}

template <typename Done>
absl::Status Member::WaitUntil(const Call& call, const base::CancelScope& scope, Done done) {
  for (bool root_ended = false;;) {
    // Nothing is read past what ends the wait: rank 0 may be in the next call by then.
    root_.socket->Flush();
    if (payload_.has_value()) payload_->Flush();
    if (done()) return absl::OkStatus();
    if (root_ended) return LoseRoot(absl::UnavailableError("its process ended"));
    if (scope.cancelled() || scope.deadline().expired()) {
      return Fail(scope.Check(absl::StrCat(
          Name(call), ": waiting for ",
          rank_0_waits_for_.empty() ? "rank 0" : absl::StrCat(rank_0_waits_for_, " with rank 0"))));
    }
    const bool sends = payload_.has_value() && !payload_->sent();
    std::vector<pollfd> fds = {
        {root_.socket->fd(), static_cast<short>(root_.socket->unsent() ? POLLIN | POLLOUT : POLLIN),
         0},
        {root_.process.has_value() ? root_.process->fd() : -1, POLLIN, 0},
        {sends ? payload_->fd() : -1, POLLOUT, 0}};
    PollUntil(fds, scope);
    root_ended = fds[1].revents != 0;
    // Also what rank 0 sent before it ended.
    WS_RETURN_IF_ERROR(ReadFrames(call));
  }
}

absl::StatusOr<int64_t> Member::Ask(const Call& call, const base::CancelScope& scope) {
  answer_.reset();
  root_.socket->Send({call.kind, round(), call.tag});
  WS_RETURN_IF_ERROR(WaitUntil(call, scope, [this] { return answer_.has_value(); }));
  return *std::exchange(answer_, std::nullopt);
}

absl::Status Member::DoBegin(const Call& call, const base::CancelScope& scope) {
  rank_0_waits_for_.clear();
  return Ask(call, scope).status();
}

absl::StatusOr<int64_t> Member::DoBroadcast(const Call& call, int64_t,
                                            const base::CancelScope& scope) {
  return Ask(call, scope);
}

absl::Status Member::DoEnd(const Call& call, const base::CancelScope& scope) {
  return Ask(call, scope).status();
}

absl::Status Member::DoGather(const Call& call, absl::Span<const int64_t> sizes, Write write, Read,
                              const base::CancelScope& scope) {
  const int64_t bytes = sizes[static_cast<size_t>(rank())];
  const Frame message{call.kind, round(), call.tag, bytes};
  // A failure of the round is seen here, also by a rank that runs ahead.
  WS_RETURN_IF_ERROR(ReadFrames(call));
  if (bytes == 0) {
    root_.socket->Send(message);
  } else if (slots_.has_value()) {
    WS_RETURN_IF_ERROR(WaitUntil(call, scope, [&] { return slots_->HasRoom(bytes); }));
    const absl::StatusOr<std::optional<Frame>> segment = slots_->Prepare(bytes);
    if (!segment.ok()) return Fail(base::Prefixed(Name(call), segment.status()));
    if (segment->has_value()) root_.socket->Send(**segment);
    write(slots_->Next(bytes));
    root_.socket->Send(message);
  } else {
    // A message of a round that failed may be left.
    WS_RETURN_IF_ERROR(WaitUntil(call, scope, [this] { return payload_->sent(); }));
    const absl::Span<std::byte> buffer = buffer_.First(bytes);
    write(buffer);
    root_.socket->Send(message);
    payload_->Send(buffer);
  }
  return WaitUntil(call, scope, [this] {
    return !root_.socket->unsent() && (!payload_.has_value() || payload_->sent());
  });
}

}  // namespace weight_sync::refit
