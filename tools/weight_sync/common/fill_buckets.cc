// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/fill_buckets.h"

#include <memory>

#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "refit/device/device.h"
#include "refit/read_guard.h"

namespace weight_sync::tools {

absl::Status FillBuckets(refit::RefitSource& source, absl::Span<const refit::Bucket> buckets,
                         absl::FunctionRef<std::byte*(size_t bucket)> place,
                         absl::FunctionRef<void(size_t bucket)> filled) {
  WS_ASSIGN_OR_RETURN(const std::unique_ptr<refit::Program> program, source.Compile(buckets));
  // Nobody outside of this process is waited for, and models may be large.
  const base::CancelScope scope(base::Deadline::After(absl::Hours(24)));
  WS_ASSIGN_OR_RETURN(const refit::ReadGuard guard, program->Begin(kFilledVersion, scope));
  refit::Stream stream = refit::Stream::Host();
  for (size_t b = 0; b < buckets.size(); ++b) {
    WS_RETURN_IF_ERROR(
        program
            ->Fill(static_cast<int>(b), {place(b), buckets[b].bytes, refit::Device::Host()}, stream)
            .status());
    filled(b);
  }
  return guard.Unchanged();
}

}  // namespace weight_sync::tools
