// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Early return on a failed absl::Status, a prefix for its message, and two in one.
//
//   WS_RETURN_IF_ERROR(link.Begin(version, deadline));
//   WS_ASSIGN_OR_RETURN(Slot slot, link.Acquire(bucket, deadline));
//   return base::Prefixed("engine 0", status);   // "engine 0: <message>", code and payloads kept
//   return base::Then(status, "closing", Close());   // "<message>; then closing: <message>"

#ifndef WEIGHT_SYNC_BASE_STATUS_MACROS_H_
#define WEIGHT_SYNC_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#define WS_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    if (absl::Status ws_status_ = (expr); !ws_status_.ok()) return ws_status_; \
  } while (false)

#define WS_MACRO_CONCAT_INNER_(a, b) a##b
#define WS_MACRO_CONCAT_(a, b) WS_MACRO_CONCAT_INNER_(a, b)
#define WS_ASSIGN_OR_RETURN(lhs, expr) \
  WS_ASSIGN_OR_RETURN_IMPL_(WS_MACRO_CONCAT_(ws_statusor_, __LINE__), lhs, expr)
#define WS_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr)     \
  auto statusor = (expr);                                  \
  if (!statusor.ok()) return std::move(statusor).status(); \
  lhs = *std::move(statusor)

namespace weight_sync::base {

inline absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status out(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

// The first error, with the text of what failed after it; or whichever of the two is one.
inline absl::Status Then(const absl::Status& first, absl::string_view what,
                         const absl::Status& next) {
  if (next.ok()) return first;
  if (first.ok()) return Prefixed(what, next);
  return absl::Status(first.code(),
                      absl::StrCat(first.message(), "; then ", what, ": ", next.message()));
}

}  // namespace weight_sync::base

#endif  // WEIGHT_SYNC_BASE_STATUS_MACROS_H_
