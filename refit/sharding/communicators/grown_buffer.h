// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory that is reused for messages of different sizes, and not cleared.

#ifndef WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_GROWN_BUFFER_H_
#define WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_GROWN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

namespace weight_sync::refit {

class GrownBuffer {
 public:
  // The first `bytes`; what was there is lost where that is more than ever before.
  absl::Span<std::byte> First(int64_t bytes) {
    if (bytes > bytes_) {
      data_.reset(new std::byte[static_cast<size_t>(bytes)]);
      bytes_ = bytes;
    }
    return {data_.get(), static_cast<size_t>(bytes)};
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t bytes_ = 0;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_SHARDING_COMMUNICATORS_GROWN_BUFFER_H_
