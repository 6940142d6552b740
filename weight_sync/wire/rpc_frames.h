// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of rpc.h share: multipart messages and the peer's kernel-checked credentials.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_FRAMES_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_FRAMES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "zmq.hpp"

namespace weight_sync::wire {

inline constexpr char kPing[] = "rpc.ping";
inline constexpr char kBye[] = "rpc.bye";

// In place of a status code: the connection was made with an earlier server at this path.
inline constexpr int32_t kUnknownConnection = -1;

struct Message {
  std::vector<std::string> frames;
  std::string peer_address;  // ZeroMQ's property of that name
};

// False when the send would block or the peer is not routable.
bool SendFrames(zmq::socket_t& socket, absl::Span<const absl::string_view> frames);

// Whole messages only; false when none is waiting.
bool ReceiveFrames(zmq::socket_t& socket, Message& message);

// The pid behind a message; FailedPrecondition if it is not this user's.
absl::StatusOr<pid_t> CheckedPeer(const Message& message);

template <typename T>
absl::string_view AsFrame(const T& value) {
  return absl::string_view(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
bool FromFrame(absl::string_view frame, T& value) {
  if (frame.size() != sizeof(value)) return false;
  frame.copy(reinterpret_cast<char*>(&value), sizeof(value));
  return true;
}

}  // namespace weight_sync::wire

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WIRE_RPC_FRAMES_H_
