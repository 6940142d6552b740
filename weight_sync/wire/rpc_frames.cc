// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/wire/rpc_frames.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weight_sync::wire {

bool SendFrames(zmq::socket_t& socket, absl::Span<const absl::string_view> frames) {
  try {
    for (size_t i = 0; i < frames.size(); ++i) {
      zmq::send_flags flags = zmq::send_flags::dontwait;
      if (i + 1 < frames.size()) flags = flags | zmq::send_flags::sndmore;
      if (!socket.send(zmq::buffer(frames[i].data(), frames[i].size()), flags)) return false;
    }
    return true;
  } catch (const zmq::error_t&) {
    return false;  // EHOSTUNREACH: a router whose peer has gone
  }
}

bool ReceiveFrames(zmq::socket_t& socket, Message& message) {
  message.frames.clear();
  message.peer_address.clear();
  try {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    for (;;) {
      // A router's first frame, the identity, does not carry the property; the next ones do.
      if (const char* address = zmq_msg_gets(part.handle(), "Peer-Address")) {
        message.peer_address = address;
      }
      message.frames.push_back(part.to_string());
      if (!part.more()) return true;
      if (!socket.recv(part, zmq::recv_flags::none)) return false;
    }
  } catch (const zmq::error_t&) {
    return false;
  }
}

absl::StatusOr<pid_t> CheckedPeer(const Message& message) {
  // "<address>:<uid>:<gid>:<pid>", written by libzmq for ipc:// from SO_PEERCRED.
  const std::vector<absl::string_view> fields = absl::StrSplit(message.peer_address, ':');
  uint32_t uid = 0;
  int pid = 0;
  if (fields.size() < 4 || !absl::SimpleAtoi(fields[fields.size() - 3], &uid) ||
      !absl::SimpleAtoi(fields.back(), &pid)) {
    return absl::InternalError(
        absl::StrCat("ZeroMQ gave no credentials of the peer: '", message.peer_address, "'"));
  }
  if (uid != ::geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat("the peer (pid ", pid, ") belongs to user ",
                                                      uid, ", this process to ", ::geteuid()));
  }
  return pid;
}

}  // namespace weight_sync::wire
