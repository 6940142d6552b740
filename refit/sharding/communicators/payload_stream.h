// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The messages of one rank on a connection of their own, bare bytes in the order of their frames.
// So a rank that fails while a message is under way can still say so, over the other connection.
// Neither end blocks; neither is thread-safe. A connection that breaks is the receiver's to notice.
//
//   sender.Send(message);                                  // which must live until sent()
//   while (!sender.sent()) ... wait for POLLOUT, then Flush() ...
//
//   WS_ASSIGN_OR_RETURN(auto message, receiver.Next(bytes));   // none yet: wait for POLLIN

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PAYLOAD_STREAM_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PAYLOAD_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/unique_fd.h"

namespace weight_sync::refit {

// Memory that is reused for messages of different sizes, and not cleared.
class MessageBuffer {
 public:
  // The first `bytes`; what was there is lost where that is more than ever before.
  absl::Span<std::byte> First(int64_t bytes);

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t bytes_ = 0;
};

// Both take a connected stream socket that does not block.
class PayloadSender {
 public:
  explicit PayloadSender(base::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // When the one before is sent.
  void Send(absl::Span<const std::byte> message);
  void Flush();
  bool sent() const { return unsent_.empty(); }

 private:
  base::UniqueFd fd_;
  absl::Span<const std::byte> unsent_;
};

class PayloadReceiver {
 public:
  explicit PayloadReceiver(base::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // The next message, when all its `bytes` are here; good until the next call. Unavailable: the
  // connection ended.
  absl::StatusOr<std::optional<absl::Span<const std::byte>>> Next(int64_t bytes);
  // The next message, of `bytes`, is not wanted. Drop() drops what is here of such ones.
  void Skip(int64_t bytes);
  absl::Status Drop();
  bool dropping() const { return drop_ > 0; }

 private:
  absl::StatusOr<int64_t> Read(absl::Span<std::byte> into);

  base::UniqueFd fd_;
  MessageBuffer buffer_;
  int64_t received_ = 0;  // of the next message
  int64_t drop_ = 0;      // before it
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_PAYLOAD_STREAM_H_
