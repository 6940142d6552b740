// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What ranks say to each other, over a stream socket between rank 0 and one other rank. A call of a
// rank is one frame to rank 0; rank 0 answers BeginRound, Broadcast and EndRound with a frame of
// the same kind.
//
//   kHello, kWelcome     round: protocol version, tag: rank, value: size, text: job
//   kRefused             value: status code, text: why
//   kData                value: a secret; a second connection starts with it, the rank as tag
//   kStart               all ranks are there
//   kBegin, kEnd         tag
//   kBroadcast           tag; from rank 0 also value
//   kMessage             tag, value: bytes, in the rank's next slot or on its stream
//   kFail                the round failed. tag: whose error it is, or -1; value: status code, text
//   kLost                as kFail, and for good
//   kSegment, kMapped    value: bytes, text: name of the memory with the rank's slots; it is mapped
//   kCredit              a slot is free again
//   kWaiting             text: the ranks that rank 0 waits for; empty: none any more
//
// Numbers cross as they lie in memory: the magic number refuses another byte order.
//
// FrameSocket reads and writes frames without blocking. A peer's numbers make it allocate no more
// than kMaxText bytes. Not thread-safe. Its end is the connection's end, also where a forked child
// holds the same socket.
//
//   socket.Send({FrameKind::kBegin, round, tag});
//   socket.Flush();                                          // wait for POLLOUT while unsent()
//   WS_ASSIGN_OR_RETURN(std::optional<Frame> frame, socket.Receive());   // or wait for POLLIN

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_FRAME_SOCKET_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_FRAME_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace weight_sync::refit {

// A change of any frame is a new number.
inline constexpr int64_t kCommunicatorProtocol = 1;

enum class FrameKind : uint32_t {
  kHello = 1,
  kWelcome,
  kRefused,
  kData,
  kStart,
  kBegin,
  kMessage,
  kBroadcast,
  kEnd,
  kFail,
  kLost,
  kSegment,
  kMapped,
  kCredit,
  kWaiting,
};

struct Frame {
  FrameKind kind;
  int64_t round = 0;
  int64_t tag = 0;
  int64_t value = 0;
  std::string text = {};  // longer than kMaxText is cut when it is sent
};

inline constexpr size_t kMaxText = 4096;

class FrameSocket {
 public:
  // A connected stream socket.
  explicit FrameSocket(base::UniqueFd fd);
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;
  ~FrameSocket();

  int fd() const { return fd_.get(); }

  // The next frame if it is here. Unavailable: the peer closed, after everything it sent was read.
  // DataLoss: what came is no frame.
  absl::StatusOr<std::optional<Frame>> Receive();

  // Sends, as far as it goes now; the rest is kept for Flush().
  void Send(const Frame& frame);
  void Flush();
  // Hands the connection over; nothing but frames was read from it. The last call.
  base::UniqueFd Take() { return std::move(fd_); }
  // Both ends see it as the end of the connection.
  void Close();

  // Not after the connection broke, which Receive() tells.
  bool unsent() const { return !broken_ && !out_.empty(); }

 private:
  base::UniqueFd fd_;
  const pid_t owner_;
  bool broken_ = false;
  std::string in_;
  std::string out_;
};

// A status as a frame of kind kFail, kLost or kRefused, and back: "rank <origin>: <message>".
Frame StatusFrame(FrameKind kind, int64_t round, int origin, const absl::Status& status);
absl::Status StatusOf(const Frame& frame);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_FRAME_SOCKET_H_
