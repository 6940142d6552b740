// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <poll.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "weight_sync/wire/rpc.h"
#include "weight_sync/wire/rpc_frames.h"
#include "zmq.hpp"

namespace weight_sync::wire {
namespace {

class Client : public RpcClient {
 public:
  Client(const std::string& path, absl::string_view role)
      : path_(path), role_(role), context_(1), socket_(context_, zmq::socket_type::dealer) {}

  ~Client() override {
    if (!connected()) return;
    const base::CancelScope scope(base::Deadline::After(absl::Seconds(1)));
    Call(kBye, "", "", scope).IgnoreError();  // a server that does not answer sees us die later
  }

  absl::Status Connect(const base::CancelScope& scope) {
    try {
      socket_.set(zmq::sockopt::linger, 0);
      socket_.set(zmq::sockopt::reconnect_ivl, 10);
      socket_.set(zmq::sockopt::reconnect_ivl_max, 200);
      socket_.connect(absl::StrCat("ipc://", path_));
    } catch (const zmq::error_t& e) {
      return absl::UnavailableError(absl::StrCat("cannot connect to ", path_, ": ", e.what()));
    }
    pid_t pid = 0;
    absl::StatusOr<RpcReply> hello = Exchange(kPing, "", "", scope, &pid);
    if (absl::IsDeadlineExceeded(hello.status())) {
      struct stat info;
      return absl::UnavailableError(
          absl::StrCat("no ", role_, " answers at ", path_,
                       ::stat(path_.c_str(), &info) == 0 ? "" : " (there is no such socket)", ": ",
                       hello.status().message()));
    }
    WS_RETURN_IF_ERROR(hello.status());
    WS_ASSIGN_OR_RETURN(base::PeerProcess peer, base::PeerProcess::Watch(pid, role_));
    peer_.emplace(std::move(peer));
    // Answered once more under watch: the pid is still the server's, not a successor's.
    return Call(kPing, "", "", scope).status();
  }

  absl::StatusOr<RpcReply> Call(absl::string_view method, absl::string_view body,
                                absl::string_view attachment,
                                const base::CancelScope& scope) override {
    absl::MutexLock lock(&mutex_);
    pid_t pid = 0;
    WS_ASSIGN_OR_RETURN(RpcReply reply, Exchange(method, body, attachment, scope, &pid));
    if (pid != peer_->pid()) return Replaced();
    return reply;
  }

  const base::PeerProcess& peer() const override { return *peer_; }

  bool connected() const override {
    return peer_.has_value() && peer_->alive() && !replaced_.load();
  }

 private:
  absl::Status Replaced() {
    replaced_.store(true);
    return absl::UnavailableError(
        absl::StrCat(peer_->name(), " is no longer what answers at ", path_));
  }

  absl::StatusOr<RpcReply> Exchange(absl::string_view method, absl::string_view body,
                                    absl::string_view attachment, const base::CancelScope& scope,
                                    pid_t* pid) {
    const uint64_t id = ++last_id_;
    const std::string what = absl::StrCat(role_, " at ", path_, ", ", method);
    if (peer_.has_value() && !peer_->alive()) return peer_->LostError();
    if (replaced_.load()) return Replaced();
    if (!SendFrames(socket_, {AsFrame(id), method, body, attachment})) {
      return absl::UnavailableError(absl::StrCat(what, ": the request could not be sent"));
    }
    for (;;) {
      Message message;
      if (ReceiveFrames(socket_, message)) {
        uint64_t replied = 0;
        int32_t code = 0;
        if (message.frames.size() != 4 || !FromFrame(message.frames[0], replied) ||
            !FromFrame(message.frames[1], code)) {
          return absl::InternalError(absl::StrCat(what, ": a malformed reply"));
        }
        if (replied != id) continue;  // to a request that gave up
        WS_ASSIGN_OR_RETURN(*pid, CheckedPeer(message));
        if (code == kUnknownConnection && peer_.has_value()) return Replaced();
        if (code != 0) {
          return absl::Status(static_cast<absl::StatusCode>(code),
                              absl::StrCat(role_, ": ", message.frames[2]));
        }
        return RpcReply{std::move(message.frames[2]), std::move(message.frames[3])};
      }
      // Replies first, then the end of the peer or the scope: what was answered is not lost.
      if (peer_.has_value() && !peer_->alive()) return peer_->LostError();
      WS_RETURN_IF_ERROR(scope.Check(what));
      zmq_pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                {nullptr, scope.fd(), ZMQ_POLLIN, 0},
                                {nullptr, peer_.has_value() ? peer_->fd() : 0, ZMQ_POLLIN, 0}};
      if (zmq_poll(items, peer_.has_value() ? 3 : 2, scope.deadline().remaining_ms()) < 0 &&
          errno != EINTR) {
        return absl::InternalError(absl::StrCat(what, ": zmq_poll: ", zmq_strerror(errno)));
      }
    }
  }

  const std::string path_;
  const std::string role_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::optional<base::PeerProcess> peer_;
  std::atomic<bool> replaced_{false};
  uint64_t last_id_ = 0;
  absl::Mutex mutex_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcClient>> RpcClient::Connect(const std::string& path,
                                                              absl::string_view role,
                                                              const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(base::CheckEndpointPath(path));
  auto client = std::make_unique<Client>(path, role);
  WS_RETURN_IF_ERROR(client->Connect(scope));
  return client;
}

}  // namespace weight_sync::wire
