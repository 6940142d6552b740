// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weight_sync::ipc {

// Two cache lines each: the adjacent-line prefetcher would else drag a neighbour along.
struct alignas(128) RingCounter {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

struct RingControl {
  RingCounter published;  // slots filled so far, modulo 2^32
  RingCounter released;   // slots given back so far
  RingCounter failed;     // not 0: the consumer has failed
};

struct alignas(64) SlotHeader {
  int64_t bucket;
  int64_t used;
};

static_assert(std::atomic<uint32_t>::is_always_lock_free);  // shared between processes

namespace {

constexpr int64_t kPage = 4096;
// A slot is filled in 20 to 400 us, a futex wake-up costs about 10. Longer spinning would take the
// core from the very process that is waited for when there are fewer cores than threads.
constexpr auto kSpin = std::chrono::microseconds(20);
// How long a sleeper goes without looking for the end of its peer or its scope.
constexpr timespec kSlice = {0, 1'000'000};

SlotHeader* HeaderOf(RingControl* control, int64_t slot) {
  return reinterpret_cast<SlotHeader*>(control + 1) + slot;
}

void Advance(RingCounter& counter) {
  counter.value.fetch_add(1);
  // Sequentially consistent with the sleeper's own order (register, then look at the counter): one
  // of the two sees the other.
  if (counter.sleepers.load() != 0) {
    ::syscall(SYS_futex, &counter.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Until ready(counter's value). `extra` is looked at between sleeps.
template <typename Ready, typename Extra>
absl::Status WaitUntil(RingCounter& counter, Ready ready, const RingWait& wait, const char* what,
                       Extra extra) {
  const auto spin_end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready(counter.value.load(std::memory_order_acquire))) return absl::OkStatus();
      Pause();
    }
  } while (std::chrono::steady_clock::now() < spin_end);
  for (;;) {
    WS_RETURN_IF_ERROR(extra());
    WS_RETURN_IF_ERROR(wait.scope->Check(what));
    const bool peer_alive = wait.peer == nullptr || wait.peer->alive();
    counter.sleepers.fetch_add(1);
    const uint32_t seen = counter.value.load();
    const bool is_ready = ready(seen);
    if (!is_ready && peer_alive) {
      ::syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &kSlice, nullptr, 0);
    }
    counter.sleepers.fetch_sub(1);
    if (is_ready) return absl::OkStatus();
    // What the peer did before it died has been looked at.
    if (!peer_alive) return wait.peer->LostError();
  }
}

}  // namespace

int64_t RingLayout::slots_offset() const {
  const int64_t control =
      static_cast<int64_t>(sizeof(RingControl)) + slots * static_cast<int64_t>(sizeof(SlotHeader));
  return (control + kPage - 1) / kPage * kPage;
}

RingProducer::RingProducer(std::byte* memory, const RingLayout& layout, bool initialize,
                           uint64_t position)
    : layout_(layout),
      memory_(memory),
      control_(initialize ? new(memory) RingControl : reinterpret_cast<RingControl*>(memory)),
      published_(position) {
  if (!initialize) return;
  control_->published.value.store(static_cast<uint32_t>(position));
  control_->released.value.store(static_cast<uint32_t>(position));
}

bool RingProducer::consumer_failed() const { return control_->failed.value.load() != 0; }

absl::StatusOr<std::byte*> RingProducer::Acquire(const RingWait& wait) {
  const auto free = [this](uint32_t released) {
    return static_cast<uint32_t>(published_) - released < static_cast<uint32_t>(layout_.slots);
  };
  const auto failed = [this] {
    return consumer_failed() ? absl::AbortedError("the consumer has failed") : absl::OkStatus();
  };
  WS_RETURN_IF_ERROR(failed());
  WS_RETURN_IF_ERROR(
      WaitUntil(control_->released, free, wait, "waiting for a free ring slot", failed));
  return memory_ + layout_.slots_offset() +
         static_cast<int64_t>(published_ % static_cast<uint64_t>(layout_.slots)) *
             layout_.slot_bytes;
}

void RingProducer::Publish(int64_t bucket, int64_t used) {
  *HeaderOf(control_, static_cast<int64_t>(published_ % static_cast<uint64_t>(layout_.slots))) = {
      bucket, used};
  ++published_;
  Advance(control_->published);
}

RingConsumer::RingConsumer(std::byte* memory, const RingLayout& layout)
    : layout_(layout), memory_(memory), control_(reinterpret_cast<RingControl*>(memory)) {}

void RingConsumer::StartAt(uint64_t position) {
  released_ = position;
  control_->released.value.store(static_cast<uint32_t>(position));
  control_->failed.value.store(0);
}

absl::StatusOr<RingConsumer::Filled> RingConsumer::Next(const RingWait& wait) {
  const auto filled = [this](uint32_t published) {
    return published != static_cast<uint32_t>(released_);
  };
  WS_RETURN_IF_ERROR(WaitUntil(control_->published, filled, wait, "waiting for a filled ring slot",
                               [] { return absl::OkStatus(); }));
  const int64_t slot = static_cast<int64_t>(released_ % static_cast<uint64_t>(layout_.slots));
  const SlotHeader header = *HeaderOf(control_, slot);
  if (header.used < 0 || header.used > layout_.slot_bytes) {
    return absl::DataLossError(absl::StrCat("ring slot ", slot, " claims ", header.used,
                                            " bytes of ", layout_.slot_bytes));
  }
  return Filled{memory_ + layout_.slots_offset() + slot * layout_.slot_bytes, header.bucket,
                header.used};
}

void RingConsumer::Release() {
  ++released_;
  Advance(control_->released);
}

void RingConsumer::Fail() {
  control_->failed.value.store(1);
  // The producer sleeps on `released`, at most a slice; this only spares it the rest of that.
  if (control_->released.sleepers.load() != 0) {
    ::syscall(SYS_futex, &control_->released.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

}  // namespace weight_sync::ipc
