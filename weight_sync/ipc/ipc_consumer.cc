// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/ipc_consumer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "refit/packing/packer.h"
#include "refit/refit_info_json.h"

namespace weight_sync::ipc {

IpcConsumer::~IpcConsumer() {
  EndUpdate(absl::AbortedError("the engine is shutting down")).IgnoreError();
}

void IpcConsumer::Handle(wire::RpcRequest request, wire::RpcResponder responder) {
  if (request.method == kHello) return responder.Reply(Hello(request));
  if (request.method == kCommit) return Commit(std::move(request), std::move(responder));
  if (request.method == kBegin) {
    const absl::Status begun = Begin(request);
    if (!begun.ok()) return responder.Reply(begun);
    return responder.Reply(wire::RpcReply{});
  }
  if (request.method == kAbort) {
    absl::Status why;
    if (!StatusFromJson(request.body, why).ok() || why.ok()) why = absl::AbortedError("no reason");
    const absl::Status own = EndUpdate(base::Prefixed("the trainer aborted", why));
    return responder.Reply(wire::RpcReply{StatusToJson(own), ""});
  }
  responder.Reply(absl::UnimplementedError(absl::StrCat("no method '", request.method, "'")));
}

void IpcConsumer::PeerGone(const absl::Status& why) {
  EndUpdate(why.ok() ? absl::AbortedError("the trainer left") : why).IgnoreError();
  session_.reset();
  // A trainer that died during the hand-over left its ring's name behind.
  if (!why.ok()) base::SweepSharedMemory();
}

absl::StatusOr<wire::RpcReply> IpcConsumer::Hello(const wire::RpcRequest& request) {
  EndUpdate(absl::AbortedError("the trainer connected anew")).IgnoreError();
  session_.reset();
  WS_ASSIGN_OR_RETURN(const HelloBody hello, HelloFromJson(request.body));
  if (options_.slot_bytes != 0 && hello.ring.slot_bytes != options_.slot_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer's ring_slot_bytes is ",
                                                   hello.ring.slot_bytes, ", this engine's ",
                                                   options_.slot_bytes));
  }
  if (hello.ring.slots < 1 || hello.geometry.bucket_bytes > hello.ring.slot_bytes ||
      hello.ring.slot_bytes > std::numeric_limits<int64_t>::max() / 2 / hello.ring.slots) {
    return absl::InvalidArgumentError(absl::StrCat("buckets of ", hello.geometry.bucket_bytes,
                                                   " bytes do not fit a ring of ", hello.ring.slots,
                                                   " slots of ", hello.ring.slot_bytes));
  }
  WS_ASSIGN_OR_RETURN(const refit::RefitInfo offered, refit::RefitInfoFromJson(request.attachment));
  const refit::RefitInfo& expected = receiver_->expected();
  WS_RETURN_IF_ERROR(refit::CheckSameTensors(expected, offered));
  WS_ASSIGN_OR_RETURN(std::vector<refit::Bucket> buckets, refit::Pack(offered, hello.geometry));
  WS_ASSIGN_OR_RETURN(base::PeerProcess trainer, base::PeerProcess::Watch(request.peer, "trainer"));
  WS_ASSIGN_OR_RETURN(base::SharedMemory memory,
                      base::SharedMemory::Open(hello.ring_name, hello.ring.bytes()));
  std::vector<int> receiver_index;
  for (const refit::TensorSpec& tensor : offered.tensors()) {
    receiver_index.push_back(*expected.Find(tensor.name));
  }
  const base::Digest128 plan = refit::PlanDigest(buckets);
  const RingConsumer ring(memory.data(), hello.ring);
  std::vector<base::Digest128> digests(buckets.size());
  session_.emplace(Session{std::move(trainer), std::move(memory), ring, std::move(buckets), plan,
                           std::move(receiver_index), std::move(digests)});
  return wire::RpcReply{plan.Hex(), ""};
}

absl::Status IpcConsumer::Begin(const wire::RpcRequest& request) {
  EndUpdate(absl::AbortedError("the trainer began another sync")).IgnoreError();
  WS_ASSIGN_OR_RETURN(const BeginBody begin, BeginFromJson(request.body));
  if (!session_.has_value() || session_->memory.name() != begin.ring_name) {
    // Another connection of the trainer's process has said hello since, or has left.
    return absl::UnavailableError(absl::StrCat("the engine does not hold ring '", begin.ring_name,
                                               "' (any more): say hello anew"));
  }
  if (begin.plan.plan != session_->plan ||
      begin.plan.buckets != static_cast<int64_t>(session_->buckets.size())) {
    return absl::InternalError("the trainer's buckets are not those of the hello");
  }
  WS_RETURN_IF_ERROR(receiver_->BeginUpdate(begin.plan.version));
  session_->ring.StartAt(begin.position);
  update_ =
      std::make_unique<Update>(begin, base::Deadline::After(absl::Milliseconds(begin.timeout_ms)));
  update_->thread = std::thread([this] { Drain(); });
  return absl::OkStatus();
}

void IpcConsumer::Commit(wire::RpcRequest request, wire::RpcResponder responder) {
  if (update_ == nullptr) {
    return responder.Reply(absl::FailedPreconditionError("commit before begin"));
  }
  const size_t expected =
      update_->begin.plan.wire_digests ? session_->buckets.size() * sizeof(base::Digest128) : 0;
  if (request.attachment.size() != expected) {
    return responder.Reply(absl::InvalidArgumentError(absl::StrCat(
        "commit brings ", request.attachment.size(), " bytes of digests, not ", expected)));
  }
  absl::MutexLock lock(&mutex_);
  if (update_->result.has_value()) {
    // Success takes the digests of a commit.
    if (update_->result->ok()) {
      return responder.Reply(absl::FailedPreconditionError("the update is committed already"));
    }
    return responder.Reply(*update_->result);
  }
  if (update_->commit.has_value()) {
    return responder.Reply(absl::FailedPreconditionError("a commit is waiting already"));
  }
  update_->committed.resize(request.attachment.size() / sizeof(base::Digest128));
  std::memcpy(update_->committed.data(), request.attachment.data(), request.attachment.size());
  update_->commit = std::move(responder);
}

absl::Status IpcConsumer::EndUpdate(const absl::Status& why) {
  if (update_ == nullptr) return absl::OkStatus();
  absl::Status own;
  {
    absl::MutexLock lock(&mutex_);
    if (update_->result.has_value()) own = *update_->result;
    update_->scope.Cancel(why);  // under the lock: AwaitCommit's condition asks for it
  }
  update_->thread.join();
  if (update_->open) receiver_->AbortUpdate(why);
  update_.reset();
  return own;
}

// On the update's thread, as everything below.
void IpcConsumer::Drain() {
  absl::Status status = DrainBuckets();
  if (status.ok()) status = AwaitCommit();
  if (status.ok() && update_->begin.plan.wire_digests) status = CompareDigests();
  if (status.ok()) status = receiver_->EndUpdate(update_->begin.plan.version);
  if (!status.ok()) {
    receiver_->AbortUpdate(status);
    update_->open = false;
  }
  std::optional<wire::RpcResponder> commit;
  {
    absl::MutexLock lock(&mutex_);
    update_->result = status;
    commit = std::exchange(update_->commit, std::nullopt);
  }
  if (!status.ok()) session_->ring.Fail();
  if (!commit.has_value()) return;
  if (!status.ok()) return commit->Reply(status);
  Receipt receipt;
  receipt.tensors = static_cast<int64_t>(session_->receiver_index.size());
  receipt.buckets = static_cast<int64_t>(session_->buckets.size());
  receipt.bytes = update_->bytes;
  commit->Reply(wire::RpcReply{ToJson(receipt), ""});
}

absl::Status IpcConsumer::DrainBuckets() {
  const RingWait wait{&update_->scope, &session_->trainer};
  for (size_t b = 0; b < session_->buckets.size(); ++b) {
    const refit::Bucket& bucket = session_->buckets[b];
    absl::StatusOr<RingConsumer::Filled> filled = session_->ring.Next(wait);
    if (!filled.ok()) return base::Prefixed(absl::StrCat("bucket ", b), filled.status());
    if (filled->bucket != static_cast<int64_t>(b) || filled->used != bucket.bytes) {
      return absl::DataLossError(absl::StrCat("expected bucket ", b, " of ", bucket.bytes,
                                              " bytes, got bucket ", filled->bucket, " of ",
                                              filled->used));
    }
    if (update_->begin.plan.wire_digests) {
      session_->digests[b] = base::DigestOf(filled->data, static_cast<size_t>(filled->used));
    }
    const absl::Status loaded = LoadBucket(bucket, filled->data);
    if (!loaded.ok()) return base::Prefixed(absl::StrCat("bucket ", b), loaded);
    session_->ring.Release();
  }
  return absl::OkStatus();
}

absl::Status IpcConsumer::LoadBucket(const refit::Bucket& bucket, const std::byte* data) {
  for (const refit::Piece& piece : bucket.pieces) {
    const int tensor = session_->receiver_index[static_cast<size_t>(piece.tensor)];
    const absl::Status loaded = receiver_->Load(
        tensor, piece.box, absl::MakeConstSpan(data + piece.dst, static_cast<size_t>(piece.bytes)));
    if (!loaded.ok()) {
      return base::Prefixed(absl::StrCat("loading '", receiver_->expected()[tensor].name, "'"),
                            loaded);
    }
    update_->bytes += piece.bytes;
  }
  return absl::OkStatus();
}

absl::Status IpcConsumer::AwaitCommit() {
  const auto decided = [this] { return update_->commit.has_value() || update_->scope.cancelled(); };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&decided), update_->scope.deadline().remaining());
  if (update_->commit.has_value()) return absl::OkStatus();
  return update_->scope.Check("waiting for the trainer's commit");
}

absl::Status IpcConsumer::CompareDigests() const {
  std::vector<size_t> wrong;
  for (size_t b = 0; b < session_->buckets.size(); ++b) {
    if (session_->digests[b] != update_->committed[b]) wrong.push_back(b);
  }
  if (wrong.empty()) return absl::OkStatus();
  const size_t count = wrong.size();
  // The tensors in the first wrong bucket: where a person would look.
  const auto name = [this](const refit::Piece& piece) {
    return receiver_->expected()[session_->receiver_index[static_cast<size_t>(piece.tensor)]].name;
  };
  const std::vector<refit::Piece>& pieces = session_->buckets[wrong[0]].pieces;
  std::string tensors;
  if (!pieces.empty()) {
    absl::StrAppend(&tensors, "; the first holds '", name(pieces.front()), "'");
    if (pieces.back().tensor != pieces.front().tensor) {
      absl::StrAppend(&tensors, " to '", name(pieces.back()), "'");
    }
  }
  constexpr size_t kShown = 5;
  wrong.resize(std::min(count, kShown));
  return absl::DataLossError(
      absl::StrCat("digests of ", count, " of ", session_->buckets.size(),
                   " buckets differ from the trainer's: ", absl::StrJoin(wrong, ", "),
                   count > kShown ? ", ..." : "", tensors));
}

}  // namespace weight_sync::ipc
