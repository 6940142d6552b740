// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The messages of the IPC link, carried by weight_sync/wire/rpc.h with JSON bodies. The trainer
// asks, the engine's consumer answers:
//
//   hello   protocol, ring (name, slots, slot_bytes), alignment; attachment: RefitInfo as JSON
//           -> plan (digest of the buckets that the engine derived)
//   begin   ring (its name at hello), version, buckets, plan, wire_digests, position in the ring,
//           timeout
//   commit  attachment: 16 bytes a bucket -> receipt (tensors, buckets, bytes)
//   abort   why -> what the engine itself had run into, if anything
//
// Weights travel in the ring (ring.h) between begin and commit. The ring is created by the trainer
// and unlinked by it when hello is answered.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_IPC_PROTOCOL_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_IPC_PROTOCOL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "refit/packing/packer.h"
#include "weight_sync/ipc/ring.h"
#include "weight_sync/link.h"

namespace weight_sync::ipc {

// Both ends must speak the same; a change of any message is a new number.
inline constexpr int kProtocolVersion = 1;

inline constexpr char kServicePrefix[] = "ipc.";
inline constexpr char kHello[] = "hello";
inline constexpr char kBegin[] = "begin";
inline constexpr char kCommit[] = "commit";
inline constexpr char kAbort[] = "abort";

struct HelloBody {
  int protocol = kProtocolVersion;
  std::string ring_name;
  RingLayout ring;
  refit::Geometry geometry;
};

struct BeginBody {
  std::string ring_name;
  TransferPlan plan;
  uint64_t position = 0;
  int64_t timeout_ms = 0;
};

std::string ToJson(const HelloBody& body);
std::string ToJson(const BeginBody& body);
std::string ToJson(const Receipt& receipt);
std::string StatusToJson(const absl::Status& status);

// InvalidArgument when a field is missing or of another type.
absl::StatusOr<HelloBody> HelloFromJson(absl::string_view text);
absl::StatusOr<BeginBody> BeginFromJson(absl::string_view text);
absl::StatusOr<Receipt> ReceiptFromJson(absl::string_view text);
// Into `status`; the result says whether the text could be read.
absl::Status StatusFromJson(absl::string_view text, absl::Status& status);

}  // namespace weight_sync::ipc

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_IPC_PROTOCOL_H_
