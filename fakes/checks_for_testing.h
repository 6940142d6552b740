// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Switches off, for tests and benchmarks, checks that every sync otherwise makes.
//
//   SynchronizerOptions options;
//   options.checks = ChecksForTesting::Make(/*wire_digests=*/false, /*read_guard=*/true);

#ifndef WEIGHT_SYNC_FAKES_CHECKS_FOR_TESTING_H_
#define WEIGHT_SYNC_FAKES_CHECKS_FOR_TESTING_H_

#include "weight_sync/checks.h"

namespace weight_sync {

class ChecksForTesting {
 public:
  static Checks Make(bool wire_digests, bool read_guard) {
    Checks checks;
    checks.wire_digests_ = wire_digests;
    checks.read_guard_ = read_guard;
    return checks;
  }
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_FAKES_CHECKS_FOR_TESTING_H_
