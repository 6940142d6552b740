// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/frame_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"

namespace weight_sync::refit {
namespace {

constexpr uint32_t kMagic = 0x57534331;  // "WSC1"

struct Header {
  uint32_t magic;
  uint32_t kind;
  uint32_t text_bytes;
  uint32_t unused;
  int64_t round;
  int64_t tag;
  int64_t value;
};
static_assert(sizeof(Header) == 40, "no padding crosses");

// A peer that leaves this much unread, beyond what the system buffers, is given up.
constexpr size_t kMostUnsent = 1 << 20;

}  // namespace

FrameSocket::FrameSocket(base::UniqueFd fd) : fd_(std::move(fd)), owner_(::getpid()) {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  PCHECK(flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) == 0);
}

FrameSocket::~FrameSocket() {
  // A child that was forked, and destroys its copy, leaves the connection as it is.
  if (fd_.valid() && ::getpid() == owner_) ::shutdown(fd_.get(), SHUT_RDWR);
}

void FrameSocket::Close() {
  broken_ = true;
  ::shutdown(fd_.get(), SHUT_RDWR);
}

absl::StatusOr<std::optional<Frame>> FrameSocket::Receive() {
  for (;;) {
    size_t wanted = sizeof(Header);
    Header header;
    if (in_.size() >= sizeof(Header)) {
      std::memcpy(&header, in_.data(), sizeof(Header));
      wanted += header.text_bytes;
      if (in_.size() == wanted) {
        Frame frame{static_cast<FrameKind>(header.kind), header.round, header.tag, header.value,
                    in_.substr(sizeof(Header))};
        in_.clear();
        return frame;
      }
    }
    const size_t have = in_.size();
    in_.resize(wanted);
    const ssize_t got = ::recv(fd_.get(), in_.data() + have, wanted - have, 0);
    const int error = errno;
    in_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return absl::UnavailableError("its connection closed");
    if (got < 0) {
      if (error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) return std::nullopt;
      return absl::UnavailableError(absl::StrCat("its connection broke: ", std::strerror(error)));
    }
    if (have >= sizeof(Header) || in_.size() < sizeof(Header)) continue;
    std::memcpy(&header, in_.data(), sizeof(Header));
    if (header.magic != kMagic || header.text_bytes > kMaxText ||
        header.kind < static_cast<uint32_t>(FrameKind::kHello) ||
        header.kind > static_cast<uint32_t>(FrameKind::kWaiting)) {
      in_.clear();
      Close();
      return absl::DataLossError("what came is no frame of this protocol");
    }
  }
}

void FrameSocket::Send(const Frame& frame) {
  if (broken_) return;
  Header header = {};
  header.magic = kMagic;
  header.kind = static_cast<uint32_t>(frame.kind);
  header.text_bytes = static_cast<uint32_t>(std::min(frame.text.size(), kMaxText));
  header.round = frame.round;
  header.tag = frame.tag;
  header.value = frame.value;
  out_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  out_.append(frame.text, 0, header.text_bytes);
  Flush();
  if (out_.size() > kMostUnsent) Close();
}

void FrameSocket::Flush() {
  while (unsent()) {
    const ssize_t sent = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      out_.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      broken_ = true;
    }
  }
}

Frame StatusFrame(FrameKind kind, int64_t round, int origin, const absl::Status& status) {
  return {kind, round, origin, static_cast<int64_t>(status.code()), std::string(status.message())};
}

absl::Status StatusOf(const Frame& frame) {
  const bool known = frame.value >= static_cast<int64_t>(absl::StatusCode::kCancelled) &&
                     frame.value <= static_cast<int64_t>(absl::StatusCode::kUnauthenticated);
  const auto code = known ? static_cast<absl::StatusCode>(frame.value) : absl::StatusCode::kUnknown;
  if (frame.tag < 0) return absl::Status(code, frame.text);
  return absl::Status(code, absl::StrCat("rank ", frame.tag, ": ", frame.text));
}

}  // namespace weight_sync::refit
