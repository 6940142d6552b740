// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The memory in which a rank leaves its messages for rank 0: kSlots slots of equal size, used in
// turn, so that a rank packs one message while rank 0 reads another. The rank makes the memory,
// large enough for its message, and makes another one when a larger message comes. What is told
// about it goes over the connection (frame_socket.h).
//
// A Segment is that memory, seen from one end: of two processes (shared memory) or of two threads.
//
//   writer: if (!writer.HasRoom(bytes)) wait for a credit;
//           WS_ASSIGN_OR_RETURN(std::optional<Frame> segment, writer.Prepare(bytes));   // tell it
//           ... fill writer.Next(bytes) ...
//   reader: ... read *reader.Next(bytes) ...

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_SLOTS_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/sharding/communicators/frame_socket.h"

namespace weight_sync::refit {

inline constexpr int64_t kSlots = 2;

class Segment {
 public:
  virtual ~Segment() = default;
  virtual std::byte* data() const = 0;
  virtual int64_t bytes() const = 0;
  virtual const std::string& name() const = 0;
  // By its maker, when the other end has it.
  virtual void Unlink() = 0;
};

// Makes segments at one end and opens them at the other.
class Segments {
 public:
  virtual ~Segments() = default;
  virtual absl::StatusOr<std::unique_ptr<Segment>> Create(int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Segment>> Open(const std::string& name, int64_t bytes) = 0;
  // Removes what the dead have left.
  virtual void Sweep() = 0;
};

std::shared_ptr<Segments> SharedMemorySegments();
std::shared_ptr<Segments> ThreadSegments();

class SlotWriter {
 public:
  explicit SlotWriter(std::shared_ptr<Segments> segments) : segments_(std::move(segments)) {}

  bool HasRoom(int64_t bytes) const {
    return written_ - credited_ < (bytes <= slot_bytes() ? kSlots : 1);
  }
  // Given that, makes the slots large enough, and returns what the reader must be told, if
  // anything.
  absl::StatusOr<std::optional<Frame>> Prepare(int64_t bytes);
  // The next slot's first `bytes`.
  absl::Span<std::byte> Next(int64_t bytes);

  void Credit() { ++credited_; }
  void Mapped();

 private:
  int64_t slot_bytes() const { return segment_ == nullptr ? 0 : segment_->bytes() / kSlots; }

  const std::shared_ptr<Segments> segments_;
  std::unique_ptr<Segment> segment_;
  int64_t written_ = 0;
  int64_t credited_ = 0;
};

class SlotReader {
 public:
  explicit SlotReader(std::shared_ptr<Segments> segments) : segments_(std::move(segments)) {}

  absl::Status Map(const Frame& segment);
  // The next slot's first `bytes`, good until a credit for it is sent. DataLoss if they are more
  // than a slot.
  absl::StatusOr<absl::Span<const std::byte>> Next(int64_t bytes);
  void Skip() { ++read_; }

 private:
  const std::shared_ptr<Segments> segments_;
  std::unique_ptr<Segment> segment_;
  int64_t read_ = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_SLOTS_H_
