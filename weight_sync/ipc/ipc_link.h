// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// IpcLink: the sender's side of the IPC transport. Slots are shared memory that both processes map;
// control goes over ZeroMQ. See protocol.h and ring.h; the far end is IpcConsumer.
//
// Each connection has a ring of its own, allocated whole at Connect (ResourceExhausted there, not
// later) and unlinked as soon as the engine has mapped it. An engine that died, also by SIGKILL, or
// was replaced, ends every wait with Unavailable at once; one that hangs ends it at the scope's
// deadline. One thread at a time.
//
//   IpcLink link("/run/user/1000/weight_sync/e0.sock", {/*slots=*/4, /*slot_bytes=*/1 << 20});
//   WS_ASSIGN_OR_RETURN(refit::Geometry geometry, link.Hello(source.info(), scope));

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_LINK_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_LINK_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/shared_memory.h"
#include "weight_sync/ipc/ring.h"
#include "weight_sync/link.h"
#include "weight_sync/wire/rpc.h"

namespace weight_sync::ipc {

class IpcLink : public Link {
 public:
  IpcLink(std::string endpoint, const RingLayout& ring)
      : endpoint_(std::move(endpoint)), layout_(ring) {}

  // Connects anew, also after a broken connection.
  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                        const base::CancelScope& scope) override;
  bool connected() const override;
  absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) override;
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                            const base::CancelScope& scope) override;
  absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                      const base::CancelScope& scope) override;
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                 const base::CancelScope& scope) override;
  absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) override;

 private:
  absl::StatusOr<wire::RpcReply> Call(const char* method, absl::string_view body,
                                      absl::string_view attachment, const base::CancelScope& scope);

  const std::string endpoint_;
  const RingLayout layout_;
  std::unique_ptr<wire::RpcClient> client_;
  std::optional<base::SharedMemory> memory_;
  std::optional<RingProducer> ring_;
};

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_IPC_LINK_H_
