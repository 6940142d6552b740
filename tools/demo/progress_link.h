// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ProgressLink: a Link that says how far the transfer is, at most ten times a second, and costs a
// clock reading a bucket. One thread at a time.
//
//   ProgressLink link(std::move(ipc_link), [](int64_t done, int64_t of) { Redraw(done, of); });

#ifndef WEIGHT_SYNC_TOOLS_DEMO_PROGRESS_LINK_H_
#define WEIGHT_SYNC_TOOLS_DEMO_PROGRESS_LINK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "weight_sync/link.h"

namespace weight_sync::demo {

class ProgressLink : public Link {
 public:
  // `show` gets buckets; done == of when the far end has committed.
  using Show = std::function<void(int64_t done, int64_t of)>;

  ProgressLink(std::unique_ptr<Link> link, Show show)
      : link_(std::move(link)), show_(std::move(show)) {}

  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                        const base::CancelScope& scope) override {
    return link_->Hello(info, scope);
  }
  bool connected() const override { return link_->connected(); }
  absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) override {
    buckets_ = plan.buckets;
    Tell(0);
    return link_->Begin(plan, scope);
  }
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                            const base::CancelScope& scope) override {
    return link_->Acquire(bucket, scope);
  }
  absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                      const base::CancelScope& scope) override {
    constexpr std::chrono::milliseconds kBetween(100);
    if (Clock::now() - told_ >= kBetween) Tell(bucket);
    return link_->Submit(bucket, used, filled, scope);
  }
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                 const base::CancelScope& scope) override {
    absl::StatusOr<Receipt> receipt = link_->Commit(digests, scope);
    if (receipt.ok()) Tell(buckets_);
    return receipt;
  }
  absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) override {
    return link_->Abort(why, scope);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Tell(int64_t done) {
    told_ = Clock::now();
    show_(done, buckets_);
  }

  const std::unique_ptr<Link> link_;
  const Show show_;
  int64_t buckets_ = 0;
  Clock::time_point told_;
};

}  // namespace weight_sync::demo

#endif  // WEIGHT_SYNC_TOOLS_DEMO_PROGRESS_LINK_H_
