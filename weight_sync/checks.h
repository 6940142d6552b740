// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The checks that every sync makes and that no option turns off. Tests and benchmarks, and only
// they, may switch one off to show that another finds a fault without it, through the testonly
// target //fakes:checks_for_testing.

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_CHECKS_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_CHECKS_H_

namespace weight_sync {

class Checks {
 public:
  // A digest for each bucket, computed on both ends.
  bool wire_digests() const { return wire_digests_; }
  // The source did not change while it was read.
  bool read_guard() const { return read_guard_; }

 private:
  friend class ChecksForTesting;

  bool wire_digests_ = true;
  bool read_guard_ = true;
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_CHECKS_H_
