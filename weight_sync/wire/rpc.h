// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Request and reply between two processes of one user on one machine, over ZeroMQ ipc:// sockets
// (https://zguide.zeromq.org, DEALER to ROUTER). The control channel of local engines: what it
// carries is small; weights travel elsewhere.
//
// - Who the peer is comes from the kernel (SO_PEERCRED, as the "Peer-Address" property of a ZeroMQ
//   message): another user is refused, and the peer's process is watched, so that its death ends
//   every wait at once with Unavailable. ZeroMQ itself does not notice a dead peer.
// - Requests carry an id that the reply repeats. A reply that comes after its request gave up is
//   dropped, so a channel works again after a timeout.
// - A server answers only connections that were made with it. One that ZeroMQ took over to a
//   successor at the same path is told so, and what it had under way is never carried out there.
// - A server serves one client process at a time (over any number of connections of that process);
//   others are refused by name until it has left or died.
//
// Frames of a request: id (8 bytes), method, body, attachment; of a reply: id, status code (4
// bytes), body or error text, attachment. Integers in host order: both ends share the machine.
//
//   // engine
//   WS_ASSIGN_OR_RETURN(auto endpoint, base::LocalEndpoint::Claim(path));
//   WS_ASSIGN_OR_RETURN(auto server, RpcServer::Start(std::move(endpoint), {{"echo.", &service}}));
//   // trainer
//   base::CancelScope scope(base::Deadline::After(absl::Seconds(30)));
//   WS_ASSIGN_OR_RETURN(auto client, RpcClient::Connect(path, "engine", scope));
//   WS_ASSIGN_OR_RETURN(RpcReply reply, client->Call("echo.say", "hello", "", scope));

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/cancel_scope.h"
#include "base/local_endpoint.h"
#include "base/peer_process.h"

namespace weight_sync::wire {

struct RpcReply {
  std::string body;
  std::string attachment;
};

// Thread-safe; calls are one at a time.
class RpcClient {
 public:
  // Waits until a server answers at `path`. `role` is what errors call it. Unavailable when none
  // does in time, FailedPrecondition when it belongs to another user or serves another process.
  static absl::StatusOr<std::unique_ptr<RpcClient>> Connect(const std::string& path,
                                                            absl::string_view role,
                                                            const base::CancelScope& scope);

  // Tells the server, if it lives, that this connection is over.
  virtual ~RpcClient() = default;

  // The service's reply or its error; Unavailable as soon as the peer is dead.
  virtual absl::StatusOr<RpcReply> Call(absl::string_view method, absl::string_view body,
                                        absl::string_view attachment,
                                        const base::CancelScope& scope) = 0;

  // The process behind the endpoint when the connection was made. A successor is another peer.
  virtual const base::PeerProcess& peer() const = 0;

  // False once the peer is dead, or its endpoint has another server: connect anew then.
  virtual bool connected() const = 0;
};

struct RpcRequest {
  std::string method;  // without the service's prefix
  std::string body;
  std::string attachment;
  pid_t peer = 0;
};

// Answers one request, from any thread. One that is dropped answers Internal. Move-only.
class RpcResponder {
 public:
  class Outbox;
  RpcResponder() = default;
  RpcResponder(std::shared_ptr<Outbox> outbox, std::string identity, uint64_t id)
      : outbox_(std::move(outbox)), identity_(std::move(identity)), id_(id) {}
  RpcResponder(RpcResponder&&) = default;
  RpcResponder& operator=(RpcResponder&& other) noexcept;
  ~RpcResponder();

  void Reply(absl::StatusOr<RpcReply> reply);

 private:
  std::shared_ptr<Outbox> outbox_;
  std::string identity_;
  uint64_t id_ = 0;
};

class RpcService {
 public:
  virtual ~RpcService() = default;

  // On the server's thread: answer soon or hand the responder to another thread.
  virtual void Handle(RpcRequest request, RpcResponder responder) = 0;

  // On the server's thread: the client process has left (why is OK) or died.
  virtual void PeerGone(const absl::Status& why) = 0;
};

class RpcServer {
 public:
  // Methods that start with a prefix go to its service; the services outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      base::LocalEndpoint endpoint, std::vector<std::pair<std::string, RpcService*>> services);

  // Stops serving. Does not call PeerGone.
  virtual ~RpcServer() = default;
};

}  // namespace weight_sync::wire

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_H_
