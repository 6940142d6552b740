// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "fakes/faulty_link.h"

#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::fakes {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::ElementsAre;

// One slot; keeps what each Submit handed over.
class RecordingLink : public Link {
 public:
  explicit RecordingLink(std::vector<std::string>* submitted) : submitted_(submitted) {}

  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo&,
                                        const base::CancelScope&) override {
    return refit::Geometry{64};
  }
  bool connected() const override { return true; }
  absl::Status Begin(const TransferPlan&, const base::CancelScope&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t, const base::CancelScope&) override {
    return refit::DeviceSpan{reinterpret_cast<std::byte*>(slot_), sizeof(slot_),
                             refit::Device::Host()};
  }
  absl::Status Submit(int64_t, int64_t used, const refit::Event&,
                      const base::CancelScope&) override {
    submitted_->emplace_back(slot_, static_cast<size_t>(used));
    return absl::OkStatus();
  }
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128>,
                                 const base::CancelScope&) override {
    return Receipt{1, 2, 3};
  }
  absl::Status Abort(const absl::Status& why, const base::CancelScope&) override { return why; }

 private:
  std::vector<std::string>* const submitted_;
  char slot_[4] = {'-', '-', '-', '-'};
};

class FaultyLinkTest : public ::testing::Test {
 protected:
  // Two syncs of two buckets, all of "aaaa", "bbbb", "cccc", "dddd".
  std::vector<std::string> SendAll(std::vector<LinkFault> faults) {
    std::vector<std::string> submitted;
    FaultyLink link(std::make_unique<RecordingLink>(&submitted), std::move(faults));
    char letter = 'a';
    for (int sync = 0; sync < 2; ++sync) {
      EXPECT_THAT(link.Begin({}, scope_), IsOk());
      for (int64_t bucket = 0; bucket < 2; ++bucket) {
        auto slot = link.Acquire(bucket, scope_);
        EXPECT_THAT(slot, IsOk());
        for (int i = 0; i < 4; ++i) slot->data[i] = static_cast<std::byte>(letter);
        ++letter;
        EXPECT_THAT(link.Submit(bucket, 4, refit::Event::Complete(), scope_), IsOk());
      }
    }
    return submitted;
  }
  base::CancelScope scope_{base::Deadline::After(absl::Minutes(1))};
};

TEST_F(FaultyLinkTest, WithoutFaultsItIsTheLinkInside) {
  EXPECT_THAT(SendAll({}), ElementsAre("aaaa", "bbbb", "cccc", "dddd"));
  std::vector<std::string> submitted;
  FaultyLink link(std::make_unique<RecordingLink>(&submitted), {});
  EXPECT_TRUE(link.connected());
  EXPECT_EQ(
      link.Hello(*refit::RefitInfo::Create({{"a", {1}, refit::DType::kU8}}), scope_)->bucket_bytes,
      64);
  EXPECT_EQ(link.Commit({}, scope_)->bytes, 3);
  EXPECT_THAT(link.Abort(absl::AbortedError("x"), scope_),
              StatusIs(absl::StatusCode::kAborted, "x"));
}

TEST_F(FaultyLinkTest, FlipsOneBitOfOneBucketOfOneSync) {
  EXPECT_THAT(SendAll({{/*sync=*/1, /*bucket=*/0, LinkFault::Do::kFlipBit}}),
              ElementsAre("aaaa", "bbbb", "bccc", "dddd"));
}

TEST_F(FaultyLinkTest, LosesBytesSoThatTheSlotKeepsWhatItHeld) {
  EXPECT_THAT(SendAll({{/*sync=*/-1, /*bucket=*/1, LinkFault::Do::kLoseBytes}}),
              ElementsAre("aaaa", "aaaa", "cccc", "cccc"));
}

TEST_F(FaultyLinkTest, CallsBeforeTheBucketIsHandedOver) {
  int calls = 0;
  SendAll({{/*sync=*/0, /*bucket=*/1, LinkFault::Do::kCall, [&calls] { ++calls; }}});
  EXPECT_EQ(calls, 1);
}

TEST_F(FaultyLinkTest, KillsItsProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(SendAll({{/*sync=*/0, /*bucket=*/1, LinkFault::Do::kKillSelf}}),
              testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace weight_sync::fakes
