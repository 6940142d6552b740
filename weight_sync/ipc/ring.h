// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A ring of slots in memory that two processes map: one producer fills slots, one consumer reads
// them, in order. A slot changes hands by a counter on its own cache lines, not by a message; a
// side that has nothing to do spins for a moment and then sleeps on the counter (futex(2)).
//
// Memory: RingLayout::bytes(), from the start: control block, one header for each slot, slots
// (page-aligned). The counters run freely modulo 2^32; each side keeps its own 64-bit position.
//
// One thread at a time may be the producer and one the consumer; they may be in two processes, or
// threads over one mapping. A wait ends when its turn comes, when the scope ends, when the peer
// process dies (`peer`, optional), or, for the producer, when the consumer has called Fail().
//
//   RingLayout layout{/*slots=*/4, /*slot_bytes=*/1 << 20};
//   RingProducer producer(memory, layout, /*initialize=*/true);     // one process
//   WS_ASSIGN_OR_RETURN(std::byte* slot, producer.Acquire(wait));
//   ... write up to slot_bytes ...
//   producer.Publish(bucket, used);
//
//   RingConsumer consumer(memory, layout);                           // the other
//   WS_ASSIGN_OR_RETURN(RingConsumer::Filled filled, consumer.Next(wait));
//   ... read filled.data[0 .. filled.used) ...
//   consumer.Release();

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_RING_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cancel_scope.h"
#include "base/peer_process.h"

namespace weight_sync::ipc {

struct RingLayout {
  int32_t slots = 0;
  int64_t slot_bytes = 0;

  int64_t slots_offset() const;
  int64_t bytes() const { return slots_offset() + slots * slot_bytes; }
};

struct RingWait {
  const base::CancelScope* scope;
  const base::PeerProcess* peer = nullptr;
};

struct RingControl;  // in the shared memory
struct SlotHeader;

class RingProducer {
 public:
  // `initialize` once, by the creator, before the other side looks. `memory` is page-aligned. The
  // count of slots begins at `position`, anything but 0 only to see the counters wrap.
  RingProducer(std::byte* memory, const RingLayout& layout, bool initialize, uint64_t position = 0);

  // The next slot, once it is free. Aborted when the consumer has failed.
  absl::StatusOr<std::byte*> Acquire(const RingWait& wait);

  // Hands the acquired slot over.
  void Publish(int64_t bucket, int64_t used);

  // How many slots were ever published: where a consumer that starts now begins.
  uint64_t position() const { return published_; }

  bool consumer_failed() const;

 private:
  const RingLayout layout_;
  std::byte* const memory_;
  RingControl* const control_;
  uint64_t published_;
};

class RingConsumer {
 public:
  RingConsumer(std::byte* memory, const RingLayout& layout);

  // Begins anew at the producer's position, with nothing in flight and no failure.
  void StartAt(uint64_t position);

  struct Filled {
    const std::byte* data;
    int64_t bucket;
    int64_t used;
  };

  // The next filled slot. DataLoss when its header makes no sense.
  absl::StatusOr<Filled> Next(const RingWait& wait);

  // Gives the slot of the last Next() back.
  void Release();

  // Makes every further Acquire() of the producer fail.
  void Fail();

 private:
  const RingLayout layout_;
  std::byte* const memory_;
  RingControl* const control_;
  uint64_t released_ = 0;
};

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_RING_H_
