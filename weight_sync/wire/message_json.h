// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// JSON bodies of messages between processes: reading that ends in a Status, never in an exception,
// and writing that takes any text. Thread-safe.
//
//   absl::Status read = ParseMessage(text, [&](const nlohmann::json& value) {
//     value.at("version").get_to(version);       // a missing field or another type:
//     InvalidArgument return absl::OkStatus();
//   });

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_WIRE_MESSAGE_JSON_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_WIRE_MESSAGE_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weight_sync::wire {

template <typename Read>
absl::Status ParseMessage(absl::string_view text, Read read) {
  try {
    return read(nlohmann::json::parse(text.begin(), text.end()));
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("malformed message: ", e.what()));
  }
}

// What is not UTF-8 is replaced: another program's text may hold anything, and the error that it is
// part of must still reach the other side.
inline std::string DumpMessage(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weight_sync::wire

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_WIRE_MESSAGE_JSON_H_
