// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// IpcConsumer: the engine's side of the IPC transport. A service on the engine's RpcServer; it maps
// the trainer's ring, drains it on a thread of its own during an update, and hands every piece to
// the engine's WeightReceiver.
//
// - Hello is refused when names, shapes or dtypes differ from the receiver's, when the ring is not
//   this user's, or when `slot_bytes` is set and the trainer's differs (both numbers are named).
// - Commit is answered when every bucket is loaded and agrees with its digest; DataLoss names the
//   buckets that do not. What the receiver returns on failure reaches the trainer as it is.
// - When the trainer dies, leaves, aborts or lets its deadline pass, the receiver's AbortUpdate is
//   called and everything of the connection is freed.
// The receiver outlives the consumer, and the consumer its server.
//
//   IpcConsumer consumer(&engine, {});
//   WS_ASSIGN_OR_RETURN(auto server, wire::RpcServer::Start(std::move(endpoint),
//                                                           {{kServicePrefix, &consumer}}));

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_CONSUMER_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_CONSUMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/digest.h"
#include "base/peer_process.h"
#include "base/shared_memory.h"
#include "refit/packing/bucket.h"
#include "weight_sync/ipc/protocol.h"
#include "weight_sync/ipc/ring.h"
#include "weight_sync/weight_receiver.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::ipc {

struct IpcConsumerOptions {
  // What this engine insists on; 0 takes what the trainer proposes.
  int64_t slot_bytes = 0;
};

class IpcConsumer : public wire::RpcService {
 public:
  IpcConsumer(WeightReceiver* receiver, const IpcConsumerOptions& options)
      : receiver_(receiver), options_(options) {}
  ~IpcConsumer() override;

  void Handle(wire::RpcRequest request, wire::RpcResponder responder) override;
  void PeerGone(const absl::Status& why) override;

 private:
  // One connection: what hello agreed on.
  struct Session {
    base::PeerProcess trainer;
    base::SharedMemory memory;
    RingConsumer ring;
    std::vector<refit::Bucket> buckets;
    base::Digest128 plan;
    std::vector<int> receiver_index;       // the receiver's number of each of the trainer's tensors
    std::vector<base::Digest128> digests;  // of the buckets, as drained
  };
  // One update: from begin until its end is known and its thread joined.
  struct Update {
    Update(const BeginBody& body, const base::Deadline& deadline) : begin(body), scope(deadline) {}
    const BeginBody begin;
    base::CancelScope scope;
    std::thread thread;
    std::optional<absl::Status> result;  // guarded by mutex_
    std::optional<wire::RpcResponder> commit;
    std::vector<base::Digest128> committed;
    int64_t bytes = 0;  // loaded so far
    bool open = true;   // the receiver has begun and has not been told to abort
  };

  absl::StatusOr<wire::RpcReply> Hello(const wire::RpcRequest& request);
  absl::Status Begin(const wire::RpcRequest& request);
  void Commit(wire::RpcRequest request, wire::RpcResponder responder);

  // Ends the update, if there is one, and returns what it had failed with by itself.
  absl::Status EndUpdate(const absl::Status& why);

  void Drain();
  absl::Status DrainBuckets();
  absl::Status LoadBucket(const refit::Bucket& bucket, const std::byte* data);
  absl::Status AwaitCommit();
  absl::Status CompareDigests() const;

  WeightReceiver* const receiver_;
  const IpcConsumerOptions options_;
  // Written by the server's thread while no update runs.
  std::optional<Session> session_;
  std::unique_ptr<Update> update_;
  mutable absl::Mutex mutex_;  // guards the update's hand-over fields
};

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_CONSUMER_H_
