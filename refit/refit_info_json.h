// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RefitInfo as JSON text, in order: {"model.norm.weight": [[1024], "BF16"], ...}. This is the form
// in which it crosses in a handshake. Names that are not UTF-8 are refused. Thread-safe.
//
//   WS_ASSIGN_OR_RETURN(std::string text, RefitInfoToJson(info));
//   WS_ASSIGN_OR_RETURN(RefitInfo same, RefitInfoFromJson(text));

#ifndef WEIGHT_SYNC_REFIT_REFIT_INFO_JSON_H_
#define WEIGHT_SYNC_REFIT_REFIT_INFO_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refit/refit_info.h"

namespace weight_sync::refit {

absl::StatusOr<std::string> RefitInfoToJson(const RefitInfo& info);

// InvalidArgument for anything but this form; a repeated name is refused too.
absl::StatusOr<RefitInfo> RefitInfoFromJson(absl::string_view text);

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_REFIT_INFO_JSON_H_
