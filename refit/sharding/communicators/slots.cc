// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/communicators/slots.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/shared_memory.h"
#include "base/status_macros.h"

namespace weight_sync::refit {
namespace {

constexpr int64_t kPage = 4096;

class SharedMemorySegment : public Segment {
 public:
  explicit SharedMemorySegment(base::SharedMemory memory) : memory_(std::move(memory)) {}
  std::byte* data() const override { return memory_.data(); }
  int64_t bytes() const override { return memory_.bytes(); }
  const std::string& name() const override { return memory_.name(); }
  // It fails only where somebody else removed the name, which is all that is wanted.
  void Unlink() override { memory_.Unlink().IgnoreError(); }

 private:
  base::SharedMemory memory_;
};

class SharedMemories : public Segments {
 public:
  absl::StatusOr<std::unique_ptr<Segment>> Create(int64_t bytes) override {
    WS_ASSIGN_OR_RETURN(base::SharedMemory memory, base::SharedMemory::Create(bytes));
    return std::make_unique<SharedMemorySegment>(std::move(memory));
  }
  absl::StatusOr<std::unique_ptr<Segment>> Open(const std::string& name, int64_t bytes) override {
    WS_ASSIGN_OR_RETURN(base::SharedMemory memory, base::SharedMemory::Open(name, bytes));
    return std::make_unique<SharedMemorySegment>(std::move(memory));
  }
  void Sweep() override { base::SweepSharedMemory(); }
};

struct Bytes {
  explicit Bytes(int64_t count) : data(new std::byte[static_cast<size_t>(count)]), bytes(count) {}
  const std::unique_ptr<std::byte[]> data;
  const int64_t bytes;
};

// By name, until both ends hold it.
struct Handover {
  absl::Mutex mutex;
  int64_t made ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<Bytes>> bytes ABSL_GUARDED_BY(mutex);
};

class ThreadSegment : public Segment {
 public:
  ThreadSegment(std::shared_ptr<Bytes> memory, std::string name, std::shared_ptr<Handover> made_in)
      : memory_(std::move(memory)), name_(std::move(name)), made_in_(std::move(made_in)) {}
  ~ThreadSegment() override { Unlink(); }
  std::byte* data() const override { return memory_->data.get(); }
  int64_t bytes() const override { return memory_->bytes; }
  const std::string& name() const override { return name_; }
  void Unlink() final {
    if (made_in_ == nullptr) return;
    absl::MutexLock lock(&made_in_->mutex);
    made_in_->bytes.erase(name_);
  }

 private:
  const std::shared_ptr<Bytes> memory_;
  const std::string name_;
  const std::shared_ptr<Handover> made_in_;  // null where it was opened
};

class ThreadMemories : public Segments {
 public:
  absl::StatusOr<std::unique_ptr<Segment>> Create(int64_t bytes) override {
    auto memory = std::make_shared<Bytes>(bytes);
    absl::MutexLock lock(&handover_->mutex);
    std::string name = absl::StrCat(handover_->made++);
    handover_->bytes[name] = memory;
    return std::make_unique<ThreadSegment>(std::move(memory), std::move(name), handover_);
  }
  absl::StatusOr<std::unique_ptr<Segment>> Open(const std::string& name, int64_t bytes) override {
    absl::MutexLock lock(&handover_->mutex);
    const auto found = handover_->bytes.find(name);
    if (found == handover_->bytes.end() || found->second->bytes != bytes) {
      return absl::UnavailableError(absl::StrCat("memory ", name, " is gone"));
    }
    return std::make_unique<ThreadSegment>(found->second, name, nullptr);
  }
  void Sweep() override {}

 private:
  const std::shared_ptr<Handover> handover_ = std::make_shared<Handover>();
};

absl::Span<std::byte> Slot(const Segment& segment, int64_t turn, int64_t bytes) {
  return {segment.data() + turn % kSlots * (segment.bytes() / kSlots), static_cast<size_t>(bytes)};
}

}  // namespace

std::shared_ptr<Segments> SharedMemorySegments() { return std::make_shared<SharedMemories>(); }
std::shared_ptr<Segments> ThreadSegments() { return std::make_shared<ThreadMemories>(); }

absl::StatusOr<std::optional<Frame>> SlotWriter::Prepare(int64_t bytes) {
  if (bytes <= slot_bytes()) return std::nullopt;
  // At least twice as large, so that slowly growing messages do not make a new one each time.
  const int64_t wanted = (std::max(bytes, 2 * slot_bytes()) + kPage - 1) / kPage * kPage;
  WS_ASSIGN_OR_RETURN(segment_, segments_->Create(kSlots * wanted));
  return Frame{FrameKind::kSegment, 0, 0, segment_->bytes(), segment_->name()};
}

absl::Span<std::byte> SlotWriter::Next(int64_t bytes) { return Slot(*segment_, written_++, bytes); }

void SlotWriter::Mapped() {
  if (segment_ != nullptr) segment_->Unlink();
}

absl::Status SlotReader::Map(const Frame& segment) {
  if (segment.value <= 0 || segment.value % (kSlots * kPage) != 0) {
    return absl::DataLossError(absl::StrCat("slots of ", segment.value, " bytes together"));
  }
  WS_ASSIGN_OR_RETURN(segment_, segments_->Open(segment.text, segment.value));
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const std::byte>> SlotReader::Next(int64_t bytes) {
  if (segment_ == nullptr || bytes > segment_->bytes() / kSlots) {
    return absl::DataLossError(absl::StrCat("a message of ", bytes, " bytes in a slot of ",
                                            segment_ == nullptr ? 0 : segment_->bytes() / kSlots));
  }
  return Slot(*segment_, read_++, bytes);
}

}  // namespace weight_sync::refit
