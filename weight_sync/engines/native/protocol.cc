// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/engines/native/protocol.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "weight_sync/wire/message_json.h"

namespace weight_sync::native {
namespace {

using nlohmann::json;
using wire::DumpMessage;
using wire::ParseMessage;

json TagsToJson(absl::Span<const MemoryTag> tags) {
  json names = json::array();
  for (const MemoryTag tag : tags) names.push_back(std::string(MemoryTagName(tag)));
  return names;
}

absl::StatusOr<std::vector<MemoryTag>> TagsFromJson(const json& names) {
  if (!names.is_array()) return absl::InvalidArgumentError("malformed message: tags is no array");
  std::vector<MemoryTag> tags;
  for (const json& name : names) {
    bool known = false;
    for (const MemoryTag tag : kAllTags) {
      if (name.get<std::string>() != MemoryTagName(tag)) continue;
      tags.push_back(tag);
      known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("unknown memory tag ", name.dump()));
    }
  }
  return tags;
}

}  // namespace

std::string ToJson(const RequestBody& body) {
  return DumpMessage({{"timeout_ms", body.timeout_ms},
                      {"version", body.version},
                      {"tags", TagsToJson(body.tags)}});
}

absl::StatusOr<RequestBody> RequestFromJson(absl::string_view text) {
  RequestBody body;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&body](const json& value) {
    value.at("timeout_ms").get_to(body.timeout_ms);
    value.at("version").get_to(body.version);
    WS_ASSIGN_OR_RETURN(body.tags, TagsFromJson(value.at("tags")));
    return absl::OkStatus();
  }));
  return body;
}

std::string ToJson(const EngineState& state) {
  return DumpMessage({{"version", state.version.has_value() ? json(*state.version) : json()},
                      {"paused", state.paused},
                      {"dirty", state.dirty},
                      {"awake", TagsToJson(state.awake)},
                      {"incarnation", state.incarnation}});
}

absl::StatusOr<EngineState> StateFromJson(absl::string_view text) {
  EngineState state;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&state](const json& value) {
    if (!value.at("version").is_null()) state.version = value.at("version").get<Version>();
    value.at("paused").get_to(state.paused);
    value.at("dirty").get_to(state.dirty);
    WS_ASSIGN_OR_RETURN(state.awake, TagsFromJson(value.at("awake")));
    value.at("incarnation").get_to(state.incarnation);
    return absl::OkStatus();
  }));
  return state;
}

std::string ToJson(absl::Span<const NamedDigest> digests) {
  json value = json::object();
  for (const NamedDigest& entry : digests) value[entry.name] = entry.digest.Hex();
  return DumpMessage(value);
}

absl::StatusOr<std::vector<NamedDigest>> DigestsFromJson(absl::string_view text) {
  std::vector<NamedDigest> digests;
  WS_RETURN_IF_ERROR(ParseMessage(text, [&digests](const json& value) {
    if (!value.is_object()) {
      return absl::InvalidArgumentError("malformed message: digests are no object");
    }
    for (const auto& [name, hex] : value.items()) {
      WS_ASSIGN_OR_RETURN(const base::Digest128 digest,
                          base::Digest128::FromHex(hex.get<std::string>()));
      digests.push_back({name, digest});
    }
    return absl::OkStatus();
  }));
  return digests;
}

}  // namespace weight_sync::native
