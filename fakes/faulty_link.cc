// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/faulty_link.h"

#include <signal.h>

#include <cstring>

namespace weight_sync::fakes {

absl::StatusOr<refit::DeviceSpan> FaultyLink::Acquire(int64_t bucket,
                                                      const base::CancelScope& scope) {
  absl::StatusOr<refit::DeviceSpan> slot = link_->Acquire(bucket, scope);
  if (slot.ok()) {
    slot_ = *slot;
    before_.assign(slot_.data, slot_.data + slot_.bytes);
  }
  return slot;
}

absl::Status FaultyLink::Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                                const base::CancelScope& scope) {
  for (const LinkFault& fault : faults_) {
    if (fault.bucket != bucket || (fault.sync != sync_ && fault.sync >= 0)) continue;
    switch (fault.action) {
      case LinkFault::Do::kFlipBit:
        slot_.data[0] ^= std::byte{1};
        break;
      case LinkFault::Do::kLoseBytes:
        std::memcpy(slot_.data, before_.data(), before_.size());
        break;
      case LinkFault::Do::kKillSelf:
        ::raise(SIGKILL);
        break;
      case LinkFault::Do::kCall:
        fault.call();
        break;
    }
  }
  return link_->Submit(bucket, used, filled, scope);
}

}  // namespace weight_sync::fakes
