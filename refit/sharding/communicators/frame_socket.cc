// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/frame_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
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
  if (::getpid() == owner_) ::shutdown(fd_.get(), SHUT_RDWR);
}

void FrameSocket::Close() {
  broken_ = true;
  ::shutdown(fd_.get(), SHUT_RDWR);
}

absl::StatusOr<int64_t> FrameSocket::Read(void* into, size_t bytes) {
  ssize_t got;
  do {
    got = ::recv(fd_.get(), into, bytes, 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return got;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return absl::UnavailableError(got == 0 ? "its connection closed"
                                         : absl::StrCat("its connection broke: ",
                                                        std::strerror(errno)));
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
    const absl::StatusOr<int64_t> got = Read(in_.data() + have, wanted - have);
    in_.resize(have + static_cast<size_t>(got.value_or(0)));
    if (!got.ok()) return got.status();
    if (*got == 0) return std::nullopt;
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

absl::StatusOr<int64_t> FrameSocket::ReceivePayload(absl::Span<std::byte> into) {
  CHECK(in_.empty());
  return Read(into.data(), into.size());
}

void FrameSocket::Append(const Frame& frame) {
  std::string& out = payload_.empty() ? out_ : after_payload_;
  Header header = {};
  header.magic = kMagic;
  header.kind = static_cast<uint32_t>(frame.kind);
  header.text_bytes = static_cast<uint32_t>(std::min(frame.text.size(), kMaxText));
  header.round = frame.round;
  header.tag = frame.tag;
  header.value = frame.value;
  out.append(reinterpret_cast<const char*>(&header), sizeof(header));
  out.append(frame.text, 0, header.text_bytes);
}

void FrameSocket::Send(const Frame& frame) {
  if (broken_) return;
  Append(frame);
  Flush();
  if (out_.size() + after_payload_.size() > kMostUnsent) Close();
}

void FrameSocket::Send(const Frame& frame, absl::Span<const std::byte> payload) {
  CHECK(payload_sent());
  if (broken_) return;
  Append(frame);
  payload_ = payload;
  Flush();
}

void FrameSocket::Flush() {
  while (unsent()) {
    iovec parts[] = {{out_.data(), out_.size()},
                     {const_cast<std::byte*>(payload_.data()), payload_.size()}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) broken_ = true;
      return;
    }
    const size_t of_out = std::min(static_cast<size_t>(sent), out_.size());
    out_.erase(0, of_out);
    payload_.remove_prefix(static_cast<size_t>(sent) - of_out);
    if (payload_.empty()) out_.append(std::exchange(after_payload_, {}));
  }
}

Frame StatusFrame(FrameKind kind, int64_t round, int origin, const absl::Status& status) {
  return {kind, round, origin, static_cast<int64_t>(status.code()), std::string(status.message())};
}

absl::Status StatusOf(const Frame& frame) {
  const bool known = frame.value >= static_cast<int64_t>(absl::StatusCode::kCancelled) &&
                     frame.value <= static_cast<int64_t>(absl::StatusCode::kUnauthenticated);
  const auto code =
      known ? static_cast<absl::StatusCode>(frame.value) : absl::StatusCode::kUnknown;
  if (frame.tag < 0) return absl::Status(code, frame.text);
  return absl::Status(code, absl::StrCat("rank ", frame.tag, ": ", frame.text));
}

}  // namespace weight_sync::refit
