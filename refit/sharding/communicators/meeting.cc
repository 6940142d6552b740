// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/sharding/communicators/frame_socket.h"
#include "refit/sharding/communicators/poll_until.h"

namespace weight_sync::refit {
namespace {

constexpr size_t kLongestJob = 256;
// Strangers that say nothing; the oldest leaves when another one comes.
constexpr size_t kMostStrangers = 64;
// For a connection, before another of the host's addresses is tried.
constexpr absl::Duration kOneTry = absl::Seconds(5);
constexpr absl::Duration kFirstPause = absl::Milliseconds(5);
constexpr absl::Duration kLongestPause = absl::Milliseconds(200);

Frame Hello(FrameKind kind, const JobRank& me) {
  return {kind, kCommunicatorProtocol, me.rank, me.size, me.job};
}

std::string Described(const JobRank& who) {
  return absl::StrCat("rank ", who.rank, " of ", who.size, " of job '", who.job, "'");
}

// What is wrong with the other end's hello; every number in it is only compared.
absl::Status CheckHello(const Frame& hello, const JobRank& me) {
  if (hello.round != kCommunicatorProtocol) {
    return absl::FailedPreconditionError(
        absl::StrCat("protocol version ", hello.round, " where ", Described(me), " speaks ",
                     kCommunicatorProtocol, ": use one version of weight_sync on all ranks"));
  }
  if (hello.text != me.job) {
    return absl::FailedPreconditionError(
        absl::StrCat("a rank of job '", hello.text, "' where ", Described(me), " is"));
  }
  if (hello.value != me.size) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", hello.tag, " of a job of ", hello.value, " ranks where ", Described(me), " is"));
  }
  return absl::OkStatus();
}

// Rank 0's view of the meeting.
class Host {
 public:
  Host(const JobRank& me, int listener, const std::string& place, const Admit& admit,
       Payloads payloads)
      : me_(me), listener_(listener), place_(place), admit_(admit), payloads_(payloads) {
    ranks_.resize(static_cast<size_t>(me.size - 1));
  }

  absl::StatusOr<std::vector<RankConnection>> Run(const base::CancelScope& scope) {
    for (;;) {
      WS_RETURN_IF_ERROR(AcceptStrangers());
      HearStrangers();
      LookAfterRanks();
      const std::string missing = Missing();
      if (missing.empty()) return Start();
      absl::Status ended = scope.Check(
          absl::StrCat(Described(me_), " waits at ", place_, " for ", missing, refused_));
      if (!ended.ok()) {
        for (const auto& rank : ranks_) {
          if (rank.has_value()) {
            rank->connection.socket->Send(StatusFrame(FrameKind::kFail, 0, 0, ended));
          }
        }
        return ended;
      }
      std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
      for (const RankConnection& stranger : strangers_) {
        fds.push_back({stranger.socket->fd(), POLLIN, 0});
      }
      for (const auto& rank : ranks_) {
        fds.push_back({rank.has_value() ? rank->connection.socket->fd() : -1, POLLRDHUP, 0});
      }
      PollUntil(fds, scope);
    }
  }

 private:
  absl::Status AcceptStrangers() {
    for (;;) {
      base::UniqueFd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
        // The others are errors of the connection that was to be accepted, accept(2) says.
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          return absl::ResourceExhaustedError(
              absl::StrCat("cannot accept a rank at ", place_, ": ", std::strerror(errno)));
        }
        continue;
      }
      absl::StatusOr<RankConnection> stranger = admit_(std::move(fd));
      if (!stranger.ok()) {
        refused_ = absl::StrCat("; refused: ", stranger.status().message());
        continue;
      }
      if (strangers_.size() == kMostStrangers) strangers_.pop_front();
      strangers_.push_back(*std::move(stranger));
    }
  }

  void HearStrangers() {
    for (auto it = strangers_.begin(); it != strangers_.end();) {
      absl::StatusOr<std::optional<Frame>> hello = it->socket->Receive();
      if (hello.ok() && !hello->has_value()) {
        ++it;
        continue;
      }
      if (hello.ok() && (*hello)->kind == FrameKind::kHello) Welcome(std::move(*it), **hello);
      if (hello.ok() && (*hello)->kind == FrameKind::kData) Attach(std::move(*it), **hello);
      it = strangers_.erase(it);
    }
  }

  void Welcome(RankConnection stranger, const Frame& hello) {
    absl::Status wrong = CheckHello(hello, me_);
    if (wrong.ok() && (hello.tag < 1 || hello.tag >= me_.size)) {
      wrong = absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.tag, " where ", Described(me_), " is"));
    }
    LookAfterRanks();  // one that left may come back
    if (wrong.ok() && ranks_[static_cast<size_t>(hello.tag - 1)].has_value()) {
      wrong = absl::FailedPreconditionError(
          absl::StrCat("a second rank ", hello.tag, " of job '", me_.job, "'"));
    }
    if (!wrong.ok()) {
      stranger.socket->Send(StatusFrame(FrameKind::kRefused, kCommunicatorProtocol, -1, wrong));
      refused_ = absl::StrCat("; refused: ", wrong.message());
      return;
    }
    stranger.socket->Send(Hello(FrameKind::kWelcome, me_));
    Rank& rank = ranks_[static_cast<size_t>(hello.tag - 1)].emplace();
    if (payloads_ == Payloads::kConnected) {
      rank.secret = std::uniform_int_distribution<int64_t>()(random_);
      stranger.socket->Send({FrameKind::kData, 0, 0, rank.secret});
    }
    rank.connection = std::move(stranger);
  }

  // The second connection of a rank that has come.
  void Attach(RankConnection stranger, const Frame& data) {
    if (data.tag < 1 || data.tag >= me_.size) return;
    std::optional<Rank>& rank = ranks_[static_cast<size_t>(data.tag - 1)];
    if (!rank.has_value() || data.value != rank->secret || rank->connection.payload.valid()) return;
    rank->connection.payload = stranger.socket->Take();
  }

  // A rank that has come says nothing until all have: what there is to read is its end.
  void LookAfterRanks() {
    for (auto& rank : ranks_) {
      if (!rank.has_value()) continue;
      const absl::StatusOr<std::optional<Frame>> said = rank->connection.socket->Receive();
      if (!said.ok() || said->has_value()) rank.reset();
    }
  }

  std::string Missing() const {
    std::vector<int> missing;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!Complete(ranks_[r])) missing.push_back(static_cast<int>(r) + 1);
    }
    if (missing.empty()) return "";
    return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "));
  }

  std::vector<RankConnection> Start() {
    std::vector<RankConnection> connections;
    for (auto& rank : ranks_) {
      rank->connection.socket->Send({FrameKind::kStart});
      connections.push_back(std::move(rank->connection));
    }
    return connections;
  }

  struct Rank {
    RankConnection connection;
    int64_t secret = 0;  // by which its second connection is known
  };

  bool Complete(const std::optional<Rank>& rank) const {
    return rank.has_value() &&
           (payloads_ == Payloads::kElsewhere || rank->connection.payload.valid());
  }

  const JobRank& me_;
  const int listener_;
  const std::string& place_;
  const Admit& admit_;
  const Payloads payloads_;
  std::random_device random_;
  std::vector<std::optional<Rank>> ranks_;  // from rank 1 on
  std::list<RankConnection> strangers_;     // accepted, and have said nothing yet
  std::string refused_;                     // the last one, for the error
};

// Until `socket` has a frame or ends.
absl::StatusOr<Frame> ReceiveOne(FrameSocket& socket, const std::string& what,
                                 const base::CancelScope& scope) {
  for (;;) {
    socket.Flush();
    WS_ASSIGN_OR_RETURN(std::optional<Frame> frame, socket.Receive());
    if (frame.has_value()) return *std::move(frame);
    WS_RETURN_IF_ERROR(scope.Check(what));
    std::vector<pollfd> fds = {
        {socket.fd(), static_cast<short>(socket.unsent() ? POLLIN | POLLOUT : POLLIN), 0}};
    PollUntil(fds, scope);
  }
}

// The end of a connect(2) in progress. Unavailable where it failed.
absl::Status AwaitConnected(int fd, const base::CancelScope& scope) {
  const base::Deadline patience = base::Deadline::After(kOneTry);
  for (;;) {
    std::vector<pollfd> fds = {{fd, POLLOUT, 0}};
    PollUntil(fds, scope, patience);
    if (fds[0].revents != 0) break;
    if (patience.expired() || scope.cancelled() || scope.deadline().expired()) {
      return absl::UnavailableError("no answer");
    }
  }
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : absl::UnavailableError(std::strerror(error));
}

absl::StatusOr<RankConnection> Connect(const Dial& dial, const Admit& admit,
                                       const base::CancelScope& scope) {
  WS_ASSIGN_OR_RETURN(base::UniqueFd fd, dial());
  WS_RETURN_IF_ERROR(AwaitConnected(fd.get(), scope));
  return admit(std::move(fd));
}

// One try. Unavailable: rank 0 was not there.
absl::StatusOr<RankConnection> Greet(const JobRank& me, const Dial& dial, const std::string& place,
                                     const Admit& admit, Payloads payloads,
                                     const base::CancelScope& scope) {
  WS_ASSIGN_OR_RETURN(RankConnection root, Connect(dial, admit, scope));
  root.socket->Send(Hello(FrameKind::kHello, me));
  absl::StatusOr<Frame> answer =
      ReceiveOne(*root.socket, absl::StrCat("what listens at ", place, " does not answer"), scope);
  if (absl::IsDataLoss(answer.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("what listens at ", place, " is no rank 0: ", answer.status().message()));
  }
  WS_RETURN_IF_ERROR(answer.status());
  if (answer->kind == FrameKind::kRefused) {
    return base::Prefixed(absl::StrCat(Described(me), " is refused at ", place), StatusOf(*answer));
  }
  const absl::Status wrong = answer->kind == FrameKind::kWelcome && answer->tag == 0
                                 ? CheckHello(*answer, me)
                                 : absl::FailedPreconditionError("it is no rank 0");
  if (!wrong.ok()) return base::Prefixed(absl::StrCat("what listens at ", place), wrong);
  if (payloads == Payloads::kConnected) {
    WS_ASSIGN_OR_RETURN(
        const Frame secret,
        ReceiveOne(*root.socket, absl::StrCat("rank 0 at ", place, " says no more"), scope));
    WS_ASSIGN_OR_RETURN(const RankConnection data, Connect(dial, admit, scope));
    data.socket->Send({FrameKind::kData, 0, me.rank, secret.value});
    root.payload = data.socket->Take();
  }
  return root;
}

}  // namespace

absl::Status CheckJobRank(const JobRank& me) {
  if (me.job.empty() || me.job.size() > kLongestJob) {
    return absl::InvalidArgumentError(absl::StrCat(
        "JobRank.job of ", me.job.size(), " bytes; a job has a name of 1 to ", kLongestJob));
  }
  if (me.size < 1 || me.rank < 0 || me.rank >= me.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("JobRank.rank is ", me.rank, " and JobRank.size is ", me.size));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RankConnection>> AcceptRanks(const JobRank& me, int listener,
                                                        const std::string& place,
                                                        const Admit& admit, Payloads payloads,
                                                        const base::CancelScope& scope) {
  return Host(me, listener, place, admit, payloads).Run(scope);
}

absl::StatusOr<RankConnection> JoinRanks(const JobRank& me, const Dial& dial,
                                         const std::string& place, const Admit& admit,
                                         Payloads payloads, const base::CancelScope& scope) {
  for (absl::Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    absl::StatusOr<RankConnection> root = Greet(me, dial, place, admit, payloads, scope);
    if (root.ok()) {
      absl::StatusOr<Frame> start = ReceiveOne(
          *root->socket,
          absl::StrCat(Described(me), " waits with rank 0 at ", place, " for others"), scope);
      if (absl::IsUnavailable(start.status())) {
        return absl::UnavailableError(
            absl::StrCat("rank 0 died at ", place, " while the ranks came together"));
      }
      WS_RETURN_IF_ERROR(start.status());
      if (start->kind == FrameKind::kFail) return StatusOf(*start);
      if (start->kind != FrameKind::kStart) {
        return absl::DataLossError(absl::StrCat("rank 0 at ", place, " does not start"));
      }
      return root;
    }
    if (!absl::IsUnavailable(root.status())) return root.status();
    WS_RETURN_IF_ERROR(scope.Check(absl::StrCat(Described(me), " waits for rank 0 at ", place, " (",
                                                root.status().message(), ")")));
    std::vector<pollfd> nothing;
    PollUntil(nothing, scope, base::Deadline::After(pause));
  }
}

}  // namespace weight_sync::refit
