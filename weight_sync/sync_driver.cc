// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/sync_driver.h"

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "weight_sync/deep_verification.h"
#include "weight_sync/seconds_since.h"

namespace weight_sync {
namespace {

class Sync {
 public:
  Sync(const SyncJob& job, base::CancelScope& scope, std::vector<base::Digest128>& digests)
      : job_(job), scope_(scope), digests_(digests) {}

  SyncResult Run() {
    absl::Status status = Steps();
    if (!status.ok()) status = CleanUp(std::move(status));
    result_.status = base::Prefixed(absl::StrCat("sync of version ", job_.version), status);
    result_.report.version = job_.version;
    result_.report.tensors = job_.source->info().size();
    result_.report.bytes = job_.source->info().total_bytes();
    result_.report.buckets = static_cast<int64_t>(job_.buckets.size());
    result_.report.seconds = SecondsSince(start_);
    return std::move(result_);
  }

 private:
  absl::Status Steps() {
    WS_RETURN_IF_ERROR(BeginBothSides());
    WS_RETURN_IF_ERROR(Transfer());
    const absl::Status verified = Verify();
    // Asked after the verification, which reads the parameters too, and before its verdict: a step
    // in between explains any difference.
    if (job_.checks.read_guard()) {
      WS_RETURN_IF_ERROR(base::Prefixed("nothing was published", guard_->Unchanged()));
    }
    ReleaseTrainer();
    WS_RETURN_IF_ERROR(verified);
    WS_RETURN_IF_ERROR(scope_.Check("before publishing"));
    WS_RETURN_IF_ERROR(base::Prefixed("publishing", job_.generation->Finish(job_.version, scope_)));
    unpublished_ = false;
    WS_RETURN_IF_ERROR(job_.before_resume());
    WS_RETURN_IF_ERROR(base::Prefixed("resuming the engine", job_.generation->Resume(scope_)));
    result_.report.engine_paused_seconds = SecondsSince(engine_paused_);
    return absl::OkStatus();
  }

  // The first failure cancels the other side; both are joined.
  absl::Status BeginBothSides() {
    engine_paused_ = trainer_blocked_ = SyncClock::now();
    std::thread engine([this] {
      absl::Status begun = job_.generation->Begin({job_.version}, scope_);
      // One that failed to begin may have paused all the same, unless it is gone; the error may be
      // the other side's, which ended the call.
      engine_may_be_paused_ = !absl::IsUnavailable(begun) || scope_.cancelled();
      if (!begun.ok()) scope_.Cancel(base::Prefixed("pausing the engine", begun));
    });
    absl::StatusOr<refit::ReadGuard> guard = job_.program->Begin(job_.version, scope_);
    if (!guard.ok()) scope_.Cancel(base::Prefixed("reading the parameters", guard.status()));
    engine.join();
    WS_RETURN_IF_ERROR(scope_.Check("pausing the engine"));
    guard_ = *std::move(guard);
    if (!guard_->blocks_trainer()) {
      result_.report.trainer_blocked_seconds = SecondsSince(trainer_blocked_);
    }
    return absl::OkStatus();
  }

  // From here on the parameters are not read.
  void ReleaseTrainer() {
    if (!guard_.has_value()) return;
    if (guard_->blocks_trainer()) {
      result_.report.trainer_blocked_seconds = SecondsSince(trainer_blocked_);
    }
    guard_.reset();
  }

  absl::Status Transfer() {
    const SyncClock::time_point start = SyncClock::now();
    const bool digest = job_.checks.wire_digests();
    digests_.resize(digest ? job_.buckets.size() : 0);
    const TransferPlan plan{job_.version, static_cast<int64_t>(job_.buckets.size()), job_.plan,
                            digest};
    WS_RETURN_IF_ERROR(base::Prefixed("beginning the transfer", job_.link->Begin(plan, scope_)));
    unpublished_ = true;
    for (size_t b = 0; b < job_.buckets.size(); ++b) {
      const absl::Status sent = SendBucket(static_cast<int>(b), digest);
      if (!sent.ok()) {
        return base::Prefixed(absl::StrCat("bucket ", b, " of ", job_.buckets.size()), sent);
      }
    }
    const absl::StatusOr<Receipt> committed = job_.link->Commit(digests_, scope_);
    if (!committed.ok()) return base::Prefixed("committing", committed.status());
    const Receipt& receipt = *committed;
    result_.report.transfer_seconds = SecondsSince(start);
    const refit::RefitInfo& info = job_.source->info();
    if (receipt.tensors != info.size() || receipt.bytes != info.total_bytes() ||
        receipt.buckets != static_cast<int64_t>(job_.buckets.size())) {
      return absl::DataLossError(absl::StrCat("the engine loaded ", receipt.tensors, " tensors, ",
                                              receipt.bytes, " bytes, ", receipt.buckets,
                                              " buckets of ", info.size(), ", ", info.total_bytes(),
                                              ", ", job_.buckets.size()));
    }
    return absl::OkStatus();
  }

  absl::Status SendBucket(int b, bool digest) {
    const int64_t used = job_.buckets[static_cast<size_t>(b)].bytes;
    WS_ASSIGN_OR_RETURN(const refit::DeviceSpan slot, job_.link->Acquire(b, scope_));
    WS_ASSIGN_OR_RETURN(const refit::Event filled, job_.program->Fill(b, slot, stream_));
    if (digest) {
      WS_RETURN_IF_ERROR(filled.Wait(scope_.deadline()));
      // At once, while the slot is in the cache.
      digests_[static_cast<size_t>(b)] = base::DigestOf(slot.data, static_cast<size_t>(used));
    }
    result_.bytes_sent = true;
    return job_.link->Submit(b, used, filled, scope_);
  }

  absl::Status Verify() {
    if (!job_.verify) return absl::OkStatus();
    const SyncClock::time_point start = SyncClock::now();
    absl::StatusOr<std::vector<NamedDigest>> table = job_.generation->TableDigests(scope_);
    if (absl::IsUnimplemented(table.status())) {
      result_.report.verification = Verification::kCannotTell;
      result_.report.verification_detail = std::string(table.status().message());
      return absl::OkStatus();
    }
    if (!table.ok()) return base::Prefixed("deep verification", table.status());
    WS_RETURN_IF_ERROR(CompareTable(*job_.source, *table));
    result_.report.verification = Verification::kEqual;
    result_.report.verification_seconds = SecondsSince(start);
    return absl::OkStatus();
  }

  // Returns the cause, or what the far end ran into first.
  absl::Status CleanUp(absl::Status cause) {
    ReleaseTrainer();
    const base::CancelScope scope(base::Deadline::After(job_.cleanup_timeout));
    if (unpublished_) {
      const absl::Status far_end = job_.link->Abort(cause, scope);
      // Aborted says that the other side failed first; here is what it says itself.
      if (absl::IsAborted(cause) && !far_end.ok()) {
        cause =
            absl::Status(far_end.code(), absl::StrCat(cause.message(), ": ", far_end.message()));
      }
    }
    // Best effort: an engine that was dirty before stays paused, and a dead one is found by the
    // next sync.
    if (engine_may_be_paused_ && !result_.bytes_sent) job_.generation->Resume(scope).IgnoreError();
    return cause;
  }

  const SyncJob& job_;
  base::CancelScope& scope_;
  std::vector<base::Digest128>& digests_;
  SyncResult result_;
  refit::Stream stream_ = refit::Stream::Host();
  std::optional<refit::ReadGuard> guard_;
  bool engine_may_be_paused_ = false;
  bool unpublished_ = false;  // an update is open at the far end
  const SyncClock::time_point start_ = SyncClock::now();
  SyncClock::time_point engine_paused_;
  SyncClock::time_point trainer_blocked_;
};

}  // namespace

SyncResult RunSync(const SyncJob& job, base::CancelScope& scope,
                   std::vector<base::Digest128>& digests) {
  return Sync(job, scope, digests).Run();
}

}  // namespace weight_sync
