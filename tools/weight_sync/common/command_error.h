// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand ends that could not do its work: exit status 1 and a line on standard error, or
// for a program {"format": 1, "ok": false, "error": "..."} on standard output.
//
//   if (!model.ok()) return TellError(model.status(), options.json);

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_COMMAND_ERROR_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_COMMAND_ERROR_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace weight_sync::tools {

// The exit status.
inline int TellError(const absl::Status& error, bool json) {
  const std::string message(error.message());
  if (json) {
    const nlohmann::json out = {{"format", 1}, {"ok", false}, {"error", message}};
    std::puts(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::fprintf(stderr, "weight_sync: %s\n", message.c_str());
  }
  return 1;
}

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_COMMAND_ERROR_H_
