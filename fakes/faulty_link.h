// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FaultyLink: a Link with faults on the sender's side of the wire, scripted by data. It stands
// between the driver and the real link, behind the driver's digest, where a wire would corrupt.
//
//   std::vector<LinkFault> faults = {{/*sync=*/1, /*bucket=*/3, LinkFault::Do::kFlipBit}};
//   FaultyLink link(std::make_unique<ipc::IpcLink>(...), faults);

#ifndef WEIGHT_SYNC_FAKES_FAULTY_LINK_H_
#define WEIGHT_SYNC_FAKES_FAULTY_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weight_sync/link.h"

namespace weight_sync::fakes {

struct LinkFault {
  int64_t sync = -1;  // at which Begin, counted from 0; -1: at every one
  int64_t bucket = 0;
  enum class Do {
    kFlipBit,    // one bit of the bucket's first byte
    kLoseBytes,  // the slot keeps what it held before: "sent", and nothing arrived
    kKillSelf,   // SIGKILL to this process
    kCall,       // `call`, such as an optimizer step
  };
  Do action = Do::kFlipBit;
  std::function<void()> call = nullptr;
};

class FaultyLink : public Link {
 public:
  FaultyLink(std::unique_ptr<Link> link, std::vector<LinkFault> faults)
      : link_(std::move(link)), faults_(std::move(faults)) {}

  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                        const base::CancelScope& scope) override {
    return link_->Hello(info, scope);
  }
  bool connected() const override { return link_->connected(); }
  absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) override {
    ++sync_;
    return link_->Begin(plan, scope);
  }
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                            const base::CancelScope& scope) override;
  absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                      const base::CancelScope& scope) override;
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                 const base::CancelScope& scope) override {
    return link_->Commit(digests, scope);
  }
  absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) override {
    return link_->Abort(why, scope);
  }

 private:
  const std::unique_ptr<Link> link_;
  const std::vector<LinkFault> faults_;
  int64_t sync_ = -1;
  refit::DeviceSpan slot_;
  std::vector<std::byte> before_;  // what the slot held when it was acquired
};

}  // namespace weight_sync::fakes

#endif  // WEIGHT_SYNC_FAKES_FAULTY_LINK_H_
