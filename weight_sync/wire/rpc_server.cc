// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/log/check.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "weight_sync/wire/rpc.h"
#include "weight_sync/wire/rpc_frames.h"
#include "zmq.hpp"

namespace weight_sync::wire {

// Replies on their way to the server's thread, which alone may touch the socket.
class RpcResponder::Outbox {
 public:
  struct Entry {
    std::string identity;
    uint64_t id;
    absl::StatusOr<RpcReply> reply;
  };

  Outbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { PCHECK(event_.valid()); }

  void Add(Entry entry) {
    absl::MutexLock lock(&mutex_);
    entries_.push_back(std::move(entry));
    Wake();
  }
  std::vector<Entry> Take() {
    absl::MutexLock lock(&mutex_);
    eventfd_t ignored;
    ::eventfd_read(event_.get(), &ignored);
    return std::exchange(entries_, {});
  }
  void Wake() { PCHECK(::eventfd_write(event_.get(), 1) == 0); }
  int fd() const { return event_.get(); }

 private:
  base::UniqueFd event_;
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

RpcResponder& RpcResponder::operator=(RpcResponder&& other) noexcept {
  if (this != &other) {
    if (outbox_ != nullptr) Reply(absl::InternalError("the request was dropped"));
    outbox_ = std::move(other.outbox_);
    identity_ = std::move(other.identity_);
    id_ = other.id_;
  }
  return *this;
}

RpcResponder::~RpcResponder() {
  if (outbox_ != nullptr) Reply(absl::InternalError("the request was dropped"));
}

void RpcResponder::Reply(absl::StatusOr<RpcReply> reply) {
  CHECK(outbox_ != nullptr) << "one reply a request";
  std::exchange(outbox_, nullptr)->Add({identity_, id_, std::move(reply)});
}

namespace {

using Services = std::vector<std::pair<std::string, RpcService*>>;

class Server : public RpcServer {
 public:
  Server(base::LocalEndpoint endpoint, Services services)
      : endpoint_(std::move(endpoint)),
        services_(std::move(services)),
        outbox_(std::make_shared<RpcResponder::Outbox>()),
        context_(1),
        socket_(context_, zmq::socket_type::router) {}

  ~Server() override {
    stop_.store(true);
    outbox_->Wake();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start() {
    try {
      socket_.set(zmq::sockopt::linger, 0);
      socket_.set(zmq::sockopt::router_mandatory, true);
      socket_.bind(endpoint_.uri());
    } catch (const zmq::error_t& e) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", endpoint_.path(), ": ", e.what()));
    }
    thread_ = std::thread([this] { Loop(); });
    return absl::OkStatus();
  }

 private:
  void Loop() {
    while (!stop_.load()) {
      zmq_pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                {nullptr, outbox_->fd(), ZMQ_POLLIN, 0},
                                {nullptr, client_.has_value() ? client_->fd() : 0, ZMQ_POLLIN, 0}};
      // Not a wait for a peer: an idle server waits for its own end too, through the outbox.
      if (zmq_poll(items, client_.has_value() ? 3 : 2, -1) < 0) CHECK_EQ(errno, EINTR);
      if (client_.has_value() && !client_->alive()) Gone(client_->LostError());
      Message message;
      while (ReceiveFrames(socket_, message)) Dispatch(message);
      for (const auto& entry : outbox_->Take()) Send(entry.identity, entry.id, entry.reply);
    }
  }

  void Dispatch(const Message& message) {
    uint64_t id = 0;
    // Anything else is no client of this protocol; there is no id to answer to.
    if (message.frames.size() != 5 || !FromFrame(message.frames[1], id)) return;
    const std::string& identity = message.frames[0];
    const std::string& method = message.frames[2];
    absl::StatusOr<pid_t> pid = CheckedPeer(message);
    if (!pid.ok()) return Send(identity, id, pid.status());
    if (method == kPing) {
      const absl::Status admitted = Admit(*pid, identity);
      if (!admitted.ok()) return Send(identity, id, admitted);
      return Send(identity, id, RpcReply{});
    }
    if (!connections_.contains(identity)) return SendCode(identity, id, kUnknownConnection, "", "");
    if (method == kBye) {
      connections_.erase(identity);
      Send(identity, id, RpcReply{});
      if (connections_.empty()) Gone(absl::OkStatus());
      return;
    }
    for (const auto& [prefix, service] : services_) {
      if (absl::StartsWith(method, prefix)) {
        return service->Handle(
            {method.substr(prefix.size()), message.frames[3], message.frames[4], *pid},
            RpcResponder(outbox_, identity, id));
      }
    }
    Send(identity, id, absl::UnimplementedError(absl::StrCat("no method '", method, "' here")));
  }

  absl::Status Admit(pid_t pid, const std::string& identity) {
    if (client_.has_value() && !client_->alive()) Gone(client_->LostError());
    if (client_.has_value() && client_->pid() != pid) {
      return absl::FailedPreconditionError(absl::StrCat("endpoint ", endpoint_.path(), " serves ",
                                                        client_->name(), ", not process ", pid));
    }
    if (!client_.has_value()) {
      WS_ASSIGN_OR_RETURN(base::PeerProcess client, base::PeerProcess::Watch(pid, "trainer"));
      client_.emplace(std::move(client));
    }
    connections_.insert(identity);
    return absl::OkStatus();
  }

  void Gone(const absl::Status& why) {
    client_.reset();
    connections_.clear();
    for (const auto& [prefix, service] : services_) service->PeerGone(why);
  }

  void Send(const std::string& identity, uint64_t id, const absl::StatusOr<RpcReply>& reply) {
    if (reply.ok()) return SendCode(identity, id, 0, reply->body, reply->attachment);
    SendCode(identity, id, static_cast<int32_t>(reply.status().code()), reply.status().message(),
             "");
  }

  // A client that has left by now misses its reply; its death or its timeout told it.
  void SendCode(const std::string& identity, uint64_t id, int32_t code, absl::string_view body,
                absl::string_view attachment) {
    SendFrames(socket_, {identity, AsFrame(id), AsFrame(code), body, attachment});
  }

  base::LocalEndpoint endpoint_;
  const Services services_;
  const std::shared_ptr<RpcResponder::Outbox> outbox_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  // Only the server's thread:
  std::optional<base::PeerProcess> client_;
  absl::flat_hash_set<std::string> connections_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(base::LocalEndpoint endpoint,
                                                            Services services) {
  auto server = std::make_unique<Server>(std::move(endpoint), std::move(services));
  WS_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace weight_sync::wire
