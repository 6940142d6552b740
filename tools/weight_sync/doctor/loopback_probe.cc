// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/doctor/loopback_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace weight_sync::doctor {
namespace {

absl::Status ConnectToSelf() {
  const base::UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!server.valid() || !client.valid()) return absl::ErrnoToStatus(errno, "cannot make a socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(server.get(), any, sizeof(address)) != 0 || ::listen(server.get(), 1) != 0) {
    return absl::ErrnoToStatus(errno, "cannot listen on a port of 127.0.0.1");
  }
  socklen_t size = sizeof(address);
  if (::getsockname(server.get(), any, &size) != 0 || ::connect(client.get(), any, size) != 0) {
    return absl::ErrnoToStatus(errno, "cannot connect to a port of 127.0.0.1");
  }
  return absl::OkStatus();
}

}  // namespace

Loopback ProbeLoopback() {
  Loopback out;
  out.error = std::string(ConnectToSelf().message());
  return out;
}

}  // namespace weight_sync::doctor
