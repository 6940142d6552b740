// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The edge between the C ABI and C++: statuses become codes with text in the caller's memory, and
// exceptions end.
//
//   int32_t ws_something(ws_thing* thing, ws_status* status) {
//     return Answer(status, [&]() -> absl::Status {
//       WS_RETURN_IF_ERROR(CheckGiven("thing", thing));
//       return thing->Something();
//     });
//   }
//
// Thread-safe.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_C_API_BOUNDARY_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_C_API_BOUNDARY_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weight_sync/c_api/weight_sync.h"

namespace weight_sync::c_api {

// Runs `call`; writes what came of it to `status`, unless that is null or too small; returns the
// code.
int32_t Answer(ws_status* status, absl::FunctionRef<absl::Status()> call) noexcept;

template <typename T>
absl::Status CheckGiven(absl::string_view what, const T* given) {
  if (given != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", what, " is a null pointer"));
}

}  // namespace weight_sync::c_api

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_C_API_BOUNDARY_H_
