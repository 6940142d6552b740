// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/plan_agreement.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "refit/differences.h"

namespace weight_sync::refit {
namespace {

using base::Digest128;

constexpr int64_t kDigestsTag = -11;
constexpr int64_t kDifferTag = -12;
constexpr int64_t kOddTag = -13;
constexpr int64_t kNoneLeft = -1;

// Each other process's digests, as many as there are `mine`, at process 0.
absl::Status GatherDigests(
    Communicator& communicator, absl::Span<const Digest128> mine, const base::CancelScope& scope,
    absl::FunctionRef<void(int process, absl::Span<const Digest128> theirs)> read) {
  const size_t bytes = mine.size() * sizeof(Digest128);
  std::vector<int64_t> sizes(static_cast<size_t>(communicator.size()), static_cast<int64_t>(bytes));
  sizes[0] = 0;
  std::vector<Digest128> theirs(mine.size());
  return communicator.Gather(
      kDigestsTag, sizes,
      [&](absl::Span<std::byte> message) { std::memcpy(message.data(), mine.data(), bytes); },
      [&](int process, absl::Span<const std::byte> message) {
        std::memcpy(theirs.data(), message.data(), bytes);
        read(process, theirs);
      },
      scope);
}

// Process 0's.
absl::StatusOr<Digest128> ShareDigest(Communicator& communicator, const Digest128& digest,
                                      const base::CancelScope& scope) {
  WS_ASSIGN_OR_RETURN(const int64_t low,
                      communicator.Broadcast(kDigestsTag, static_cast<int64_t>(digest.low), scope));
  WS_ASSIGN_OR_RETURN(
      const int64_t high,
      communicator.Broadcast(kDigestsTag, static_cast<int64_t>(digest.high), scope));
  return Digest128{static_cast<uint64_t>(low), static_cast<uint64_t>(high)};
}

}  // namespace

PlanAgreement::PlanAgreement(Digests digests) : digests_(std::move(digests)) {
  base::Digester digester;
  digester.Add(&digests_.frame, sizeof(Digest128));
  digester.Add(digests_.by_trainer.data(), digests_.by_trainer.size() * sizeof(Digest128));
  fingerprint_ = digester.Finish();
}

absl::StatusOr<std::vector<int>> PlanAgreement::Agree(Communicator& communicator, OnMesh on_mesh,
                                                      Name name, const base::CancelScope& scope) {
  bool differ = false;
  WS_RETURN_IF_ERROR(GatherDigests(communicator, {&fingerprint_, 1}, scope,
                                   [&](int, absl::Span<const Digest128> theirs) {
                                     differ = differ || theirs[0] != fingerprint_;
                                   }));
  WS_ASSIGN_OR_RETURN(const int64_t any, communicator.Broadcast(kDifferTag, differ ? 1 : 0, scope));
  if (any == 0) return std::vector<int>();
  WS_ASSIGN_OR_RETURN(const std::vector<int> odd, FindOdd(communicator, on_mesh, name, scope));
  WS_ASSIGN_OR_RETURN(std::vector<int> left, ShareOdd(communicator, odd, scope));
  WS_ASSIGN_OR_RETURN(fingerprint_, ShareDigest(communicator, fingerprint_, scope));
  return left;
}

// At process 0: the tensors that some process declares otherwise, and may.
absl::StatusOr<std::vector<int>> PlanAgreement::FindOdd(Communicator& communicator, OnMesh on_mesh,
                                                        Name name,
                                                        const base::CancelScope& scope) const {
  Differences strangers("made for another model, layout or buckets than process 0");
  WS_RETURN_IF_ERROR(GatherDigests(communicator, {&digests_.frame, 1}, scope,
                                   [&](int process, absl::Span<const Digest128> theirs) {
                                     if (theirs[0] == digests_.frame) return;
                                     strangers.Add(absl::StrCat("process ", process));
                                   }));
  if (!strangers.empty()) return absl::FailedPreconditionError(strangers.ToString());

  // So all of them have as many tensors.
  std::set<int> odd;
  Differences otherwise("sharded otherwise than process 0 says");
  WS_RETURN_IF_ERROR(
      GatherDigests(communicator, digests_.by_trainer, scope,
                    [&](int process, absl::Span<const Digest128> theirs) {
                      for (size_t t = 0; t < theirs.size(); ++t) {
                        if (theirs[t] == digests_.by_trainer[t]) continue;
                        const int trainer = static_cast<int>(t);
                        odd.insert(trainer);
                        if (!on_mesh(trainer, process)) continue;
                        otherwise.Add(absl::StrCat("'", name(trainer), "' by process ", process));
                      }
                    }));
  if (!otherwise.empty()) return absl::FailedPreconditionError(otherwise.ToString());
  return std::vector<int>(odd.begin(), odd.end());
}

absl::StatusOr<std::vector<int>> PlanAgreement::ShareOdd(Communicator& communicator,
                                                         absl::Span<const int> odd,
                                                         const base::CancelScope& scope) const {
  std::vector<int> left;
  for (size_t i = 0;; ++i) {
    WS_ASSIGN_OR_RETURN(
        const int64_t next,
        communicator.Broadcast(kOddTag, i < odd.size() ? odd[i] : kNoneLeft, scope));
    if (next == kNoneLeft) return left;
    if (next < 0 || next >= static_cast<int64_t>(digests_.by_trainer.size())) {
      return absl::InternalError(
          absl::StrCat("process 0 names tensor ", next, " of ", digests_.by_trainer.size()));
    }
    const Digest128& mine = digests_.by_trainer[static_cast<size_t>(next)];
    WS_ASSIGN_OR_RETURN(const Digest128 counts, ShareDigest(communicator, mine, scope));
    if (counts != mine) left.push_back(static_cast<int>(next));
  }
}

}  // namespace weight_sync::refit
