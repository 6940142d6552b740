// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Policy: what a trainer gives to its synchronizer: its parameters, and the memory phases that a
// colocated engine needs from it. The parameters' source outlives the synchronizer.
//
//   class MyPolicy : public weight_sync::Policy {
//    public:
//     refit::RefitSource& source() override { return *source_; }
//     absl::Status OffloadBeforeRefit() override { return optimizer_.MoveToHost(); }
//     absl::Status OffloadAfterRefit() override { return optimizer_.MoveToDevice(); }
//   };

#ifndef WEIGHT_SYNC_WEIGHT_SYNC_POLICY_H_
#define WEIGHT_SYNC_WEIGHT_SYNC_POLICY_H_

#include "absl/status/status.h"
#include "refit/refit_source.h"

namespace weight_sync {

class Policy {
 public:
  virtual ~Policy() = default;

  virtual refit::RefitSource& source() = 0;

  // Makes room for the engine's weights: optimizer state, gradients. Only colocated synchronizers
  // call it, before the engine wakes.
  virtual absl::Status OffloadBeforeRefit() { return absl::OkStatus(); }

  // Called once for each OffloadBeforeRefit, also after a failed sync.
  virtual absl::Status OffloadAfterRefit() { return absl::OkStatus(); }
};

}  // namespace weight_sync

#endif  // WEIGHT_SYNC_WEIGHT_SYNC_POLICY_H_
