// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/payload_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::refit {

absl::Span<std::byte> MessageBuffer::First(int64_t bytes) {
  if (bytes > bytes_) {
    data_.reset(new std::byte[static_cast<size_t>(bytes)]);
    bytes_ = bytes;
  }
  return {data_.get(), static_cast<size_t>(bytes)};
}

void PayloadSender::Send(absl::Span<const std::byte> message) {
  CHECK(sent());
  unsent_ = message;
  Flush();
}

void PayloadSender::Flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      unsent_.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      unsent_ = {};
    }
  }
}

absl::StatusOr<int64_t> PayloadReceiver::Read(absl::Span<std::byte> into) {
  ssize_t got;
  do {
    got = ::recv(fd_.get(), into.data(), into.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return got;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return absl::UnavailableError(
      got == 0 ? "the connection of its messages closed"
               : absl::StrCat("the connection of its messages broke: ", std::strerror(errno)));
}

absl::Status PayloadReceiver::Drop() {
  std::array<std::byte, 16 << 10> dropped;
  while (drop_ > 0) {
    const auto most = static_cast<size_t>(std::min<int64_t>(drop_, dropped.size()));
    WS_ASSIGN_OR_RETURN(const int64_t got, Read(absl::MakeSpan(dropped).first(most)));
    if (got == 0) break;
    drop_ -= got;
  }
  return absl::OkStatus();
}

void PayloadReceiver::Skip(int64_t bytes) {
  const int64_t left = bytes - std::exchange(received_, 0);
  // A peer's number: more than can be is never dropped to the end either.
  drop_ += std::min(left, std::numeric_limits<int64_t>::max() - drop_);
}

absl::StatusOr<std::optional<absl::Span<const std::byte>>> PayloadReceiver::Next(int64_t bytes) {
  WS_RETURN_IF_ERROR(Drop());
  if (drop_ > 0) return std::nullopt;
  const absl::Span<std::byte> message = buffer_.First(bytes);
  while (received_ < bytes) {
    WS_ASSIGN_OR_RETURN(const int64_t got, Read(message.subspan(static_cast<size_t>(received_))));
    if (got == 0) return std::nullopt;
    received_ += got;
  }
  received_ = 0;
  return message;
}

}  // namespace weight_sync::refit
