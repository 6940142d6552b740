// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/contribute.h"

#include "base/status_macros.h"
#include "refit/device/device.h"

namespace weight_sync::refit {

absl::Status Contribute(Program& program, size_t buckets, Version version,
                        const base::CancelScope& scope,
                        absl::FunctionRef<void(const ReadGuard&)> begun) {
  WS_ASSIGN_OR_RETURN(const ReadGuard guard, program.Begin(version, scope));
  begun(guard);
  Stream stream = Stream::Host();
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    WS_RETURN_IF_ERROR(program.Fill(static_cast<int>(bucket), {}, stream).status());
  }
  return guard.Unchanged();
}

}  // namespace weight_sync::refit
