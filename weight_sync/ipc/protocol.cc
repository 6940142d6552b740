// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/ipc/protocol.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "weight_sync/wire/message_json.h"

namespace weight_sync::ipc {

using nlohmann::json;
using wire::DumpMessage;
using wire::ParseMessage;

std::string ToJson(const HelloBody& body) {
  return DumpMessage({{"protocol", body.protocol},
                      {"ring_name", body.ring_name},
                      {"slots", body.ring.slots},
                      {"slot_bytes", body.ring.slot_bytes},
                      {"bucket_bytes", body.geometry.bucket_bytes},
                      {"alignment", body.geometry.alignment}});
}

absl::StatusOr<HelloBody> HelloFromJson(absl::string_view text) {
  HelloBody body;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&body](const json& value) {
    value.at("protocol").get_to(body.protocol);
    // The rest has this form in this version of the protocol only.
    if (body.protocol != kProtocolVersion) {
      return absl::InvalidArgumentError(absl::StrCat("the trainer speaks protocol ", body.protocol,
                                                     ", this engine ", kProtocolVersion));
    }
    value.at("ring_name").get_to(body.ring_name);
    value.at("slots").get_to(body.ring.slots);
    value.at("slot_bytes").get_to(body.ring.slot_bytes);
    value.at("bucket_bytes").get_to(body.geometry.bucket_bytes);
    value.at("alignment").get_to(body.geometry.alignment);
    return absl::OkStatus();
  }));
  return body;
}

std::string ToJson(const BeginBody& body) {
  return DumpMessage({{"ring_name", body.ring_name},
                      {"version", body.plan.version},
                      {"buckets", body.plan.buckets},
                      {"plan", body.plan.plan.Hex()},
                      {"wire_digests", body.plan.wire_digests},
                      {"position", body.position},
                      {"timeout_ms", body.timeout_ms}});
}

absl::StatusOr<BeginBody> BeginFromJson(absl::string_view text) {
  BeginBody body;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&body](const json& value) {
    value.at("ring_name").get_to(body.ring_name);
    value.at("version").get_to(body.plan.version);
    value.at("buckets").get_to(body.plan.buckets);
    WS_ASSIGN_OR_RETURN(body.plan.plan,
                        base::Digest128::FromHex(value.at("plan").get<std::string>()));
    value.at("wire_digests").get_to(body.plan.wire_digests);
    value.at("position").get_to(body.position);
    value.at("timeout_ms").get_to(body.timeout_ms);
    return absl::OkStatus();
  }));
  return body;
}

std::string ToJson(const Receipt& receipt) {
  return DumpMessage(
      {{"tensors", receipt.tensors}, {"buckets", receipt.buckets}, {"bytes", receipt.bytes}});
}

absl::StatusOr<Receipt> ReceiptFromJson(absl::string_view text) {
  Receipt receipt;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&receipt](const json& value) {
    value.at("tensors").get_to(receipt.tensors);
    value.at("buckets").get_to(receipt.buckets);
    value.at("bytes").get_to(receipt.bytes);
    return absl::OkStatus();
  }));
  return receipt;
}

std::string StatusToJson(const absl::Status& status) {
  return DumpMessage(
      {{"code", static_cast<int>(status.code())}, {"message", std::string(status.message())}});
}

absl::Status StatusFromJson(absl::string_view text, absl::Status& status) {
  return ParseMessage(text, [&status](const json& value) {
    status = absl::Status(static_cast<absl::StatusCode>(value.at("code").get<int>()),
                          value.at("message").get<std::string>());
    return absl::OkStatus();
  });
}

}  // namespace weight_sync::ipc
