// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/ipc_link.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/refit_info_json.h"
#include "weight_sync/ipc/protocol.h"

namespace weight_sync::ipc {

static_assert(sizeof(base::Digest128) == 16, "digests cross as they lie in memory");

absl::StatusOr<wire::RpcReply> IpcLink::Call(const char* method, absl::string_view body,
                                             absl::string_view attachment,
                                             const base::CancelScope& scope) {
  if (client_ == nullptr) return absl::FailedPreconditionError("the link has no connection");
  return client_->Call(absl::StrCat(kServicePrefix, method), body, attachment, scope);
}

absl::StatusOr<refit::Geometry> IpcLink::Hello(const refit::RefitInfo& info,
                                               const base::CancelScope& scope) {
  client_.reset();
  ring_.reset();
  memory_.reset();
  base::SweepSharedMemory();
  const refit::Geometry geometry{layout_.slot_bytes};
  WS_ASSIGN_OR_RETURN(const std::vector<refit::Bucket> buckets, refit::Pack(info, geometry));
  WS_ASSIGN_OR_RETURN(const std::string tensors, refit::RefitInfoToJson(info));
  // The memory first: nothing is asked of the engine that cannot be kept.
  absl::StatusOr<base::SharedMemory> memory = base::SharedMemory::Create(layout_.bytes());
  if (!memory.ok()) {
    return base::Prefixed(absl::StrCat("ring of ring_slots ", layout_.slots, " x ring_slot_bytes ",
                                       layout_.slot_bytes),
                          memory.status());
  }
  RingProducer ring(memory->data(), layout_, /*initialize=*/true);
  WS_ASSIGN_OR_RETURN(auto client, wire::RpcClient::Connect(endpoint_, "engine", scope));
  client_ = std::move(client);
  HelloBody hello;
  hello.ring_name = memory->name();
  hello.ring = layout_;
  hello.geometry = geometry;
  absl::StatusOr<wire::RpcReply> reply = Call(kHello, ToJson(hello), tensors, scope);
  if (!reply.ok()) {
    client_.reset();
    return reply.status();
  }
  WS_RETURN_IF_ERROR(memory->Unlink());
  if (reply->body != refit::PlanDigest(buckets).Hex()) {
    client_.reset();
    return absl::InternalError("trainer and engine derived different buckets from one geometry");
  }
  memory_ = *std::move(memory);
  ring_.emplace(ring);
  return geometry;
}

bool IpcLink::connected() const {
  return client_ != nullptr && client_->connected() && ring_.has_value();
}

absl::Status IpcLink::Begin(const TransferPlan& plan, const base::CancelScope& scope) {
  if (!ring_.has_value()) return absl::FailedPreconditionError("the link has no connection");
  BeginBody body;
  body.ring_name = memory_->name();
  body.plan = plan;
  body.position = ring_->position();
  body.timeout_ms = scope.deadline().remaining_ms();
  const absl::Status begun = Call(kBegin, ToJson(body), "", scope).status();
  if (absl::IsUnavailable(begun)) client_.reset();  // not this ring's engine: say hello anew
  return begun;
}

absl::StatusOr<refit::DeviceSpan> IpcLink::Acquire(int64_t, const base::CancelScope& scope) {
  if (client_ == nullptr || !ring_.has_value()) {
    return absl::FailedPreconditionError("the link has no connection");
  }
  const base::PeerProcess& engine = client_->peer();
  const absl::StatusOr<std::byte*> slot = ring_->Acquire({&scope, &engine});
  if (slot.ok()) return refit::DeviceSpan{*slot, layout_.slot_bytes, refit::Device::Host()};
  // A cancellation has its own cause, and a death names the engine already.
  if (scope.cancelled() || absl::IsUnavailable(slot.status())) return slot.status();
  return base::Prefixed(engine.name(), slot.status());
}

absl::Status IpcLink::Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                             const base::CancelScope& scope) {
  WS_RETURN_IF_ERROR(filled.Wait(scope.deadline()));
  ring_->Publish(bucket, used);
  return absl::OkStatus();
}

absl::StatusOr<Receipt> IpcLink::Commit(absl::Span<const base::Digest128> digests,
                                        const base::CancelScope& scope) {
  const absl::string_view attachment(reinterpret_cast<const char*>(digests.data()),
                                     digests.size() * sizeof(base::Digest128));
  WS_ASSIGN_OR_RETURN(const wire::RpcReply reply, Call(kCommit, "", attachment, scope));
  return ReceiptFromJson(reply.body);
}

absl::Status IpcLink::Abort(const absl::Status& why, const base::CancelScope& scope) {
  const absl::StatusOr<wire::RpcReply> reply = Call(kAbort, StatusToJson(why), "", scope);
  absl::Status far_end;
  if (!reply.ok() || !StatusFromJson(reply->body, far_end).ok()) {
    client_.reset();  // the end of the connection aborts what could not be told
  }
  return far_end;
}

}  // namespace weight_sync::ipc
