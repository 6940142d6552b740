// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/root.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/sharding/communicators/poll_until.h"

namespace weight_sync::refit {
namespace {

// Calls received ahead of their turn, of one rank.
constexpr size_t kMostAhead = 64;
// Times so many of one that has ended.
constexpr int kMostListening = 1000;
// A wait that takes longer tells the ranks that have arrived which have not, so that whoever's
// deadline passes first can name them.
constexpr absl::Duration kPatience = absl::Milliseconds(20);
constexpr int kMostNamed = 8;

bool IsCall(FrameKind kind) {
  return kind == FrameKind::kBegin || kind == FrameKind::kMessage ||
         kind == FrameKind::kBroadcast || kind == FrameKind::kEnd;
}

}  // namespace

Root::Root(std::vector<RankConnection> members, std::shared_ptr<Segments> segments)
    : RoundCommunicator(0, static_cast<int>(members.size()) + 1), segments_(std::move(segments)) {
  for (RankConnection& connection : members) {
    Peer& peer = peers_.emplace_back();
    peer.rank = static_cast<int>(peers_.size());
    peer.connection = std::move(connection);
    if (segments_ != nullptr) {
      peer.slots.emplace(segments_);
    } else {
      peer.payload.emplace(std::move(peer.connection.payload));
    }
  }
}

Root::~Root() {
  // A rank that died may have left a segment that it had not yet unlinked.
  if (segments_ != nullptr) segments_->Sweep();
}

void Root::Tell(const Frame& status) {
  for (Peer& peer : peers_) peer.connection.socket->Send(status);
}

void Root::FlushNow() {
  for (Peer& peer : peers_) peer.connection.socket->Flush();
}

absl::Status Root::LosePeer(Peer& peer, const absl::Status& why) {
  peer.connection.socket->Close();
  // An end is a death; anything else is told as it is.
  if (!absl::IsUnavailable(why)) return Lose(base::Prefixed(absl::StrCat("rank ", peer.rank), why));
  return Lose(absl::UnavailableError(absl::StrCat("rank ", peer.rank, " died (", why.message(),
                                                  ") while rank 0 was in ", Name(call_))));
}

void Root::Drop(Peer& peer, const Frame& call) {
  if (call.kind != FrameKind::kMessage || call.value == 0) return;
  if (peer.slots.has_value()) {
    peer.slots->Skip();
    peer.connection.socket->Send({FrameKind::kCredit});
  } else {
    peer.payload->Skip(call.value);
  }
}

void Root::DropReceived(Peer& peer) {
  for (const Frame& call : peer.calls) Drop(peer, call);
  peer.calls.clear();
}

absl::Status Root::Map(Peer& peer, const Frame& segment) {
  if (peer.ended) return absl::OkStatus();
  absl::Status mapped = peer.slots->Map(segment);
  if (mapped.ok()) {
    peer.connection.socket->Send({FrameKind::kMapped});
    return mapped;
  }
  // It went with its maker, or somebody else removed it.
  return Ended(peer, absl::IsUnavailable(mapped) ? absl::InternalError(mapped.message()) : mapped);
}

absl::Status Root::ReceiveOther(Peer& peer, const Frame& frame) {
  if (frame.kind == FrameKind::kSegment && peer.slots.has_value()) return Map(peer, frame);
  if (frame.round > round() || !(IsCall(frame.kind) || frame.kind == FrameKind::kFail)) {
    return LosePeer(peer, absl::DataLossError(
                              absl::StrCat("a frame of kind ", static_cast<uint32_t>(frame.kind),
                                           " of round ", frame.round, " in round ", round())));
  }
  if (frame.round < round()) {
    Drop(peer, frame);
    return absl::OkStatus();
  }
  Frame told = frame;
  if (told.tag >= 0) told.tag = peer.rank;
  Tell(told);
  return FailedBy(told);
}

absl::Status Root::Receive(Peer& peer) {
  FrameSocket& socket = *peer.connection.socket;
  if (peer.payload.has_value()) {
    const absl::Status dropped = peer.payload->Drop();
    if (!dropped.ok() && !peer.ended) return Ended(peer, dropped);
  }
  for (;;) {
    if (peer.calls.size() >= kMostAhead) return absl::OkStatus();
    absl::StatusOr<std::optional<Frame>> frame = socket.Receive();
    if (!frame.ok()) return LosePeer(peer, frame.status());
    if (!frame->has_value()) return absl::OkStatus();
    if ((*frame)->kind == FrameKind::kMessage && (*frame)->value < 0) {
      return LosePeer(peer, absl::DataLossError("a message of a negative size"));
    }
    if (IsCall((*frame)->kind) && (*frame)->round == round()) {
      peer.calls.push_back(**std::move(frame));
    } else {
      WS_RETURN_IF_ERROR(ReceiveOther(peer, **frame));
    }
  }
}

absl::Status Root::Ended(Peer& peer, const absl::Status& why) {
  peer.ended = true;
  // What it called before does not matter any more; what it died of may come behind that. One that
  // lives and goes on sending is not listened to for ever.
  for (int more = 0; more < kMostListening && (more == 0 || !peer.calls.empty()); ++more) {
    DropReceived(peer);
    WS_RETURN_IF_ERROR(Receive(peer));
  }
  return LosePeer(peer, why);
}

absl::StatusOr<bool> Root::ReadMessage(Peer& peer, int64_t bytes, Read read) {
  if (peer.slots.has_value()) {
    const absl::StatusOr<absl::Span<const std::byte>> slot = peer.slots->Next(bytes);
    if (!slot.ok()) return LosePeer(peer, slot.status());
    read(peer.rank, *slot);
    peer.connection.socket->Send({FrameKind::kCredit});
    return true;
  }
  const auto message = peer.payload->Next(bytes);
  if (!message.ok()) return Ended(peer, message.status());
  peer.awaits = !message->has_value();
  if (peer.awaits) return false;
  read(peer.rank, **message);
  return true;
}

absl::Status Root::Match(Peer& peer, const Call& call, const Messages* messages) {
  while (!peer.arrived && !peer.calls.empty()) {
    const Frame& its = peer.calls.front();
    const bool broadcast = !peer.broadcasts.empty();
    if (!broadcast && call.kind == FrameKind::kBroadcast) break;  // it is ahead
    const Call mine = broadcast ? Call{FrameKind::kBroadcast, peer.broadcasts.front()} : call;
    if (its.kind != mine.kind || its.tag != mine.tag) {
      return Mismatch(peer.rank, Name({its.kind, its.tag}), Name(mine));
    }
    if (broadcast) {
      peer.broadcasts.pop_front();
    } else {
      if (messages != nullptr) {
        const int64_t bytes = messages->sizes[static_cast<size_t>(peer.rank)];
        if (its.value != bytes) {
          return Mismatch(peer.rank, absl::StrCat(Name(mine), " with ", its.value, " bytes"),
                          absl::StrCat("it for ", bytes));
        }
        if (bytes > 0) {
          WS_ASSIGN_OR_RETURN(const bool complete, ReadMessage(peer, bytes, messages->read));
          if (!complete) break;
        }
      }
      peer.arrived = true;
    }
    peer.calls.pop_front();
  }
  return absl::OkStatus();
}

std::string Root::Missing() const {
  std::string names;
  int count = 0;
  for (const Peer& peer : peers_) {
    if (peer.arrived) continue;
    if (++count <= kMostNamed) absl::StrAppend(&names, names.empty() ? "" : ", ", peer.rank);
  }
  if (count > kMostNamed) absl::StrAppend(&names, " and ", count - kMostNamed, " more");
  return absl::StrCat(count == 1 ? "rank " : "ranks ", names);
}

void Root::TellTheArrived(const std::string& missing) {
  for (Peer& peer : peers_) {
    if (peer.arrived) {
      peer.connection.socket->Send({FrameKind::kWaiting, round(), 0, 0, missing});
    }
  }
}

absl::Status Root::Meet(const Call& call, const Messages* messages,
                        const base::CancelScope& scope) {
  for (Peer& peer : peers_) {
    peer.arrived = false;
    peer.awaits = false;
    peer.readable = true;
  }
  const auto arrived = [](const Peer& peer) { return peer.arrived; };
  int64_t here = -1;
  bool told = false, ever_told = false;
  base::Deadline patience = base::Deadline::After(kPatience);
  for (;;) {
    for (Peer& peer : peers_) {
      if (!peer.readable) continue;
      WS_RETURN_IF_ERROR(Receive(peer));
      WS_RETURN_IF_ERROR(Match(peer, call, messages));
    }
    FlushNow();
    const int64_t now_here = std::count_if(peers_.begin(), peers_.end(), arrived);
    if (now_here == static_cast<int64_t>(peers_.size())) break;
    if (now_here != here) {
      here = now_here;
      told = false;
      patience = base::Deadline::After(kPatience);
    } else if (!told && patience.expired()) {
      TellTheArrived(Missing());
      told = ever_told = true;
    }
    if (scope.cancelled() || scope.deadline().expired()) {
      return Fail(scope.Check(absl::StrCat(Name(call), ": waiting for ", Missing())));
    }
    std::vector<pollfd> fds;
    for (const Peer& peer : peers_) {
      const FrameSocket& socket = *peer.connection.socket;
      fds.push_back({socket.fd(),
                     static_cast<short>(POLLRDHUP | (peer.calls.size() < kMostAhead ? POLLIN : 0) |
                                        (socket.unsent() ? POLLOUT : 0)),
                     0});
      const auto& process = peer.connection.process;
      fds.push_back({process.has_value() ? process->fd() : -1, POLLIN, 0});
      const bool payload = peer.payload.has_value() && (peer.awaits || peer.payload->dropping());
      fds.push_back({payload ? peer.payload->fd() : -1, POLLIN, 0});
    }
    PollUntil(fds, scope, told ? scope.deadline() : patience);
    for (size_t p = 0; p < peers_.size(); ++p) {
      const auto events = [&](size_t fd) { return fds[3 * p + fd].revents; };
      peers_[p].readable = (events(0) & POLLIN) != 0 || events(2) != 0;
      const bool closed = (events(0) & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
      if (closed || events(1) != 0) {
        return Ended(peers_[p], absl::UnavailableError(closed ? "its connection closed"
                                                              : "its process ended"));
      }
    }
  }
  if (ever_told) TellTheArrived("");
  return absl::OkStatus();
}

absl::Status Root::Answer(const Call& call, int64_t value, const base::CancelScope& scope) {
  for (Peer& peer : peers_) {
    peer.connection.socket->Send({call.kind, round(), call.tag, value});
  }
  for (;;) {
    FlushNow();
    std::vector<pollfd> fds;
    for (Peer& peer : peers_) {
      peer.arrived = !peer.connection.socket->unsent();
      if (!peer.arrived) fds.push_back({peer.connection.socket->fd(), POLLOUT, 0});
    }
    if (fds.empty()) return absl::OkStatus();
    if (scope.cancelled() || scope.deadline().expired()) {
      return Fail(scope.Check(absl::StrCat(Name(call), ": answering ", Missing())));
    }
    PollUntil(fds, scope);
  }
}

absl::Status Root::DoBegin(const Call& call, const base::CancelScope& scope) {
  call_ = call;
  for (Peer& peer : peers_) {
    DropReceived(peer);
    peer.broadcasts.clear();
  }
  WS_RETURN_IF_ERROR(Meet(call, nullptr, scope));
  return Answer(call, 0, scope);
}

absl::Status Root::DoGather(const Call& call, absl::Span<const int64_t> sizes, Write, Read read,
                            const base::CancelScope& scope) {
  call_ = call;
  const Messages messages{sizes, read};
  return Meet(call, &messages, scope);
}

absl::StatusOr<int64_t> Root::DoBroadcast(const Call& call, int64_t value,
                                          const base::CancelScope& scope) {
  call_ = call;
  for (Peer& peer : peers_) peer.broadcasts.push_back(call.tag);
  WS_RETURN_IF_ERROR(Answer(call, value, scope));
  for (Peer& peer : peers_) {
    peer.arrived = false;
    WS_RETURN_IF_ERROR(Receive(peer));
    WS_RETURN_IF_ERROR(Match(peer, call, nullptr));
  }
  return value;
}

absl::Status Root::DoEnd(const Call& call, const base::CancelScope& scope) {
  call_ = call;
  WS_RETURN_IF_ERROR(Meet(call, nullptr, scope));
  return Answer(call, 0, scope);
}

}  // namespace weight_sync::refit
