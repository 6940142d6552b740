// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// BoundArrays: where a source's arrays are at the moment. A source shares one with its programs, which
// are compiled from how the arrays lie and ask for their places at each bucket.
//
// Syncs read the arrays in place, or, after UseSnapshots(), a copy that Begin() makes: the trainer is
// held only while that is made, for the price of memory of the arrays' size. One sync at a time then.
//
// Nobody may bind or release arrays while a program runs. Not thread-safe.
//
//   auto arrays = std::make_shared<BoundArrays>(views, /*bindable=*/views.size());
//   arrays->Bind(version, places);
//   WS_ASSIGN_OR_RETURN(ReadGuard guard, arrays->Begin(version, gate));
//   WS_ASSIGN_OR_RETURN(auto bases, arrays->bases());

#ifndef WEIGHT_SYNC_REFIT_BOUND_ARRAYS_H_
#define WEIGHT_SYNC_REFIT_BOUND_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refit/read_guard.h"
#include "refit/snapshot.h"
#include "refit/tensor/tensor_view.h"
#include "refit/version.h"

namespace weight_sync::refit {

class BoundArrays {
 public:
  // How the arrays lie. The first `bindable` are bound and released; where those behind them are,
  // the views say, for good.
  BoundArrays(std::vector<TensorView> views, size_t bindable);

  // data() of each bindable array. Without a version they are of whatever version a sync is.
  void Bind(std::optional<Version> version, absl::Span<const std::byte* const> places);
  void Bind(std::optional<Version> version, absl::Span<const TensorView> arrays);
  void Release();

  // ResourceExhausted when there is no memory for a copy.
  absl::Status UseSnapshots();

  // FailedPrecondition while nothing is bound, or another version; Aborted while a step is writing,
  // or when one began before the copy was made.
  absl::StatusOr<ReadGuard> Begin(Version version, const StepGate& gate);

  // By array: where what syncs read is. FailedPrecondition while nothing is bound, or no copy made.
  absl::StatusOr<absl::Span<const std::byte* const>> bases() const;

  // Another number whenever what bases() answers may have moved.
  uint64_t binding() const { return binding_; }
  // The same as long as that is `binding`: Aborted afterwards.
  absl::StatusOr<absl::Span<const std::byte* const>> bases(uint64_t binding) const;

 private:
  const std::vector<TensorView> views_;
  const size_t bindable_;
  std::vector<const std::byte*> places_;  // of the arrays
  bool bound_ = false;
  std::optional<Version> version_;
  uint64_t binding_ = 0;
  std::optional<Snapshot> snapshot_;
  std::vector<const std::byte*> copied_;  // places in the snapshot, once one was taken
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_BOUND_ARRAYS_H_
