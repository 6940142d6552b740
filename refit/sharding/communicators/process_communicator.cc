// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/process_communicator.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/log/check.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/local_endpoint.h"
#include "base/peer_process.h"
#include "base/status_macros.h"
#include "refit/sharding/communicators/frame_socket.h"
#include "refit/sharding/communicators/meeting.h"
#include "refit/sharding/communicators/member.h"
#include "refit/sharding/communicators/root.h"
#include "refit/sharding/communicators/slots.h"

namespace weight_sync::refit {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  CHECK_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<RankConnection> AdmitLocal(base::UniqueFd fd) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  PCHECK(::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0);
  if (peer.uid != ::geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat("a process of user ", peer.uid, " (pid ",
                                                      peer.pid, ") where ranks are of user ",
                                                      ::geteuid()));
  }
  RankConnection connection;
  // One of another pid namespace cannot be watched; then its connection alone tells.
  if (auto process = base::PeerProcess::Watch(peer.pid, "rank"); process.ok()) {
    connection.process = *std::move(process);
  }
  connection.socket = std::make_unique<FrameSocket>(std::move(fd));
  return connection;
}

absl::StatusOr<base::UniqueFd> DialUnix(const std::string& path) {
  base::UniqueFd fd(::socket(AF_UNIX, kSocketFlags, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  const sockaddr_un address = UnixAddress(path);
  // A unix socket connects at once or not at all; EAGAIN is a full backlog.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN) {
      return absl::UnavailableError(std::strerror(errno));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("cannot connect to ", path, ": ", std::strerror(errno)));
  }
  return fd;
}

// A machine that is alive answers probes, however long its rank reads nothing. TCP_USER_TIMEOUT
// would take a rank 0 that is busy elsewhere, with its window closed, for a dead one.
absl::StatusOr<RankConnection> AdmitTcp(base::UniqueFd fd) {
  const auto set = [&fd](int level, int option, int value) {
    PCHECK(::setsockopt(fd.get(), level, option, &value, sizeof(value)) == 0);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  RankConnection connection;
  connection.socket = std::make_unique<FrameSocket>(std::move(fd));
  return connection;
}

struct Address {
  int family = AF_UNSPEC;
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host, int port, bool listens) {
  if (host.empty() || port < (listens ? 0 : 1) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("host '", host, "' and port ", port, " for the trainer's ranks"));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot find host '", host, "': ", ::gai_strerror(error)));
  }
  const absl::Cleanup free = [found] { ::freeaddrinfo(found); };
  std::vector<Address> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Address& address = addresses.emplace_back();
    address.family = info->ai_family;
    address.length = info->ai_addrlen;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
  }
  return addresses;
}

// On one machine a socket that connects to a port of the range from which its own is chosen, where
// nobody listens yet, can meet itself.
bool ConnectedToItself(int fd) {
  sockaddr_storage here = {}, there = {};
  socklen_t here_length = sizeof(here), there_length = sizeof(there);
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_length) == 0 &&
         here_length == there_length && std::memcmp(&here, &there, here_length) == 0;
}

absl::StatusOr<base::UniqueFd> DialTcp(const Address& address) {
  base::UniqueFd fd(::socket(address.family, kSocketFlags, 0));
  if (!fd.valid()) return absl::UnavailableError(std::strerror(errno));
  if (::connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(std::strerror(errno));
  }
  return fd;
}

std::string Place(const std::string& host, int port) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectOnHost(const JobRank& me,
                                                            const std::string& endpoint,
                                                            const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(CheckJobRank(me));
  WS_RETURN_IF_ERROR(base::CheckEndpointPath(endpoint));
  const std::shared_ptr<Segments> segments = SharedMemorySegments();
  if (me.rank != 0) {
    WS_ASSIGN_OR_RETURN(RankConnection root, JoinRanks(
                                                 me, [&] { return DialUnix(endpoint); }, endpoint,
                                                 AdmitLocal, Payloads::kElsewhere, scope));
    return std::make_unique<Member>(me.rank, me.size, std::move(root), segments);
  }
  segments->Sweep();
  WS_ASSIGN_OR_RETURN(const base::LocalEndpoint claim, base::LocalEndpoint::Claim(endpoint));
  const base::UniqueFd listener(::socket(AF_UNIX, kSocketFlags, 0));
  const sockaddr_un address = UnixAddress(endpoint);
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", endpoint, ": ", std::strerror(errno)));
  }
  WS_ASSIGN_OR_RETURN(
      std::vector<RankConnection> members,
      AcceptRanks(me, listener.get(), endpoint, AdmitLocal, Payloads::kElsewhere, scope));
  return std::make_unique<Root>(std::move(members), segments);
}

absl::StatusOr<TcpHost> TcpHost::Listen(const std::string& host, int port) {
  WS_ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(host, port, /*listens=*/true));
  std::string why;
  for (const Address& address : addresses) {
    base::UniqueFd listener(::socket(address.family, kSocketFlags, 0));
    const int on = 1;
    sockaddr_storage bound = {};
    socklen_t length = sizeof(bound);
    if (!listener.valid() ||
        ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        ::bind(listener.get(), address.get(), address.length) != 0 ||
        ::listen(listener.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
      why = std::strerror(errno);
      continue;
    }
    // The port lies at the same place in both families' addresses.
    return TcpHost(std::move(listener), ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port));
  }
  return absl::UnavailableError(absl::StrCat("cannot listen at ", Place(host, port), ": ", why));
}

absl::StatusOr<std::unique_ptr<Communicator>> TcpHost::Connect(const JobRank& me,
                                                               const base::CancelScope& scope) && {
  const base::UniqueFd listener = std::move(listener_);
  WS_RETURN_IF_ERROR(CheckJobRank(me));
  if (me.rank != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("JobRank.rank is ", me.rank, " where rank 0 listens"));
  }
  WS_ASSIGN_OR_RETURN(std::vector<RankConnection> members,
                      AcceptRanks(me, listener.get(), absl::StrCat("TCP port ", port_), AdmitTcp,
                                  Payloads::kConnected, scope));
  return std::make_unique<Root>(std::move(members), nullptr);
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectOverTcp(const JobRank& me,
                                                             const std::string& host, int port,
                                                             const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(CheckJobRank(me));
  if (me.rank == 0) {
    return absl::InvalidArgumentError("JobRank.rank is 0, which listens: use TcpHost");
  }
  WS_ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(host, port, /*listens=*/false));
  // One address after the other, until rank 0 answers at one.
  size_t turn = 0;
  const auto dial = [&] { return DialTcp(addresses[turn++ % addresses.size()]); };
  const auto admit = [](base::UniqueFd fd) -> absl::StatusOr<RankConnection> {
    if (ConnectedToItself(fd.get())) return absl::UnavailableError("nobody listens there");
    return AdmitTcp(std::move(fd));
  };
  WS_ASSIGN_OR_RETURN(RankConnection root,
                      JoinRanks(me, dial, Place(host, port), admit, Payloads::kConnected, scope));
  return std::make_unique<Member>(me.rank, me.size, std::move(root), nullptr);
}

}  // namespace weight_sync::refit
