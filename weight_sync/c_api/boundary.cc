// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/c_api/boundary.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "weight_sync/c_api/sized_struct.h"

namespace weight_sync::c_api {
namespace {

constexpr bool SameValue(ws_code ours, absl::StatusCode code) {
  return static_cast<int>(ours) == static_cast<int>(code);
}
static_assert(SameValue(WS_OK, absl::StatusCode::kOk));
static_assert(SameValue(WS_INVALID_ARGUMENT, absl::StatusCode::kInvalidArgument));
static_assert(SameValue(WS_DEADLINE_EXCEEDED, absl::StatusCode::kDeadlineExceeded));
static_assert(SameValue(WS_NOT_FOUND, absl::StatusCode::kNotFound));
static_assert(SameValue(WS_RESOURCE_EXHAUSTED, absl::StatusCode::kResourceExhausted));
static_assert(SameValue(WS_FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition));
static_assert(SameValue(WS_ABORTED, absl::StatusCode::kAborted));
static_assert(SameValue(WS_UNIMPLEMENTED, absl::StatusCode::kUnimplemented));
static_assert(SameValue(WS_INTERNAL, absl::StatusCode::kInternal));
static_assert(SameValue(WS_UNAVAILABLE, absl::StatusCode::kUnavailable));
static_assert(SameValue(WS_DATA_LOSS, absl::StatusCode::kDataLoss));

void Write(int32_t code, absl::string_view text, ws_status* status) {
  if (!CheckSize("status", status).ok()) return;
  status->code = code;
  status->text_length = text.size();
  if (status->text == nullptr || status->text_capacity == 0) return;
  size_t length = std::min(text.size(), status->text_capacity - 1);
  if (length < text.size()) {
    // Not in the middle of a UTF-8 character.
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  std::memcpy(status->text, text.data(), length);
  status->text[length] = '\0';
}

}  // namespace

int32_t Answer(ws_status* status, absl::FunctionRef<absl::Status()> call) noexcept {
  int32_t code = WS_INTERNAL;
  try {
    const absl::Status result = call();
    code = static_cast<int32_t>(result.raw_code());
    Write(code, result.message(), status);
  } catch (const std::bad_alloc&) {
    code = WS_RESOURCE_EXHAUSTED;
    Write(code, "no memory left", status);
  } catch (const std::exception& e) {
    Write(code, e.what(), status);
  } catch (...) {
    Write(code, "an exception of an unknown type", status);
  }
  return code;
}

}  // namespace weight_sync::c_api
