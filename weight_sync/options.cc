// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/options.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/local_endpoint.h"
#include "base/status_macros.h"
#include "refit/packing/packer.h"

namespace weight_sync {

absl::Status CheckOptions(const SynchronizerOptions& options) {
  WS_RETURN_IF_ERROR(base::CheckEndpointPath(options.endpoint));
  constexpr int32_t kMostSlots = 4096;
  if (options.ring_slots < 1 || options.ring_slots > kMostSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("ring_slots is ", options.ring_slots, "; it must be 1 to ", kMostSlots));
  }
  if (absl::Status status = refit::CheckGeometry({options.ring_slot_bytes}); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("ring_slot_bytes is ", options.ring_slot_bytes,
                                                   "; it must be a positive multiple of ",
                                                   refit::Geometry().alignment));
  }
  if (options.ring_slot_bytes > std::numeric_limits<int64_t>::max() / 2 / options.ring_slots) {
    return absl::InvalidArgumentError(absl::StrCat("ring_slot_bytes of ", options.ring_slot_bytes,
                                                   " times ring_slots of ", options.ring_slots,
                                                   " does not fit 64 bits"));
  }
  if (options.policy_version < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy_version is ", options.policy_version, "; it must not be negative"));
  }
  if (options.engine_version.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("engine_version is ", *options.engine_version, "; it must not be negative"));
  }
  if (options.deep_verification_every < 0) {
    return absl::InvalidArgumentError(absl::StrCat("deep_verification_every is ",
                                                   options.deep_verification_every,
                                                   "; it must not be negative"));
  }
  const struct {
    const char* name;
    absl::Duration value;
  } timeouts[] = {{"connect_timeout", options.connect_timeout},
                  {"sync_timeout", options.sync_timeout},
                  {"cleanup_timeout", options.cleanup_timeout}};
  for (const auto& timeout : timeouts) {
    if (timeout.value <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat(
          timeout.name, " is ", absl::FormatDuration(timeout.value), "; it must be positive"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weight_sync
