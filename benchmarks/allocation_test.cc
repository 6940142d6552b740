// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// The steady state of a sync allocates nothing for a bucket, a piece or a tensor, at either end.
// The engine runs in this process, so that its threads are counted too.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status_matchers.h"
#include "base/testing/socket_folder.h"
#include "benchmarks/allocation_counter.h"
#include "benchmarks/states.h"
#include "fakes/engine_host.h"
#include "fakes/seeded_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weight_sync/engines/native/native_generation.h"
#include "weight_sync/ipc/ipc_link.h"
#include "weight_sync/ipc/ipc_weight_synchronizer.h"

namespace weight_sync::benchmarks {
namespace {

using ::absl_testing::IsOk;

// The real link; notes the counts where the driver's loop over the buckets starts and ends.
class CountingLink : public Link {
 public:
  CountingLink(const std::string& endpoint, const ipc::RingLayout& ring) : link_(endpoint, ring) {}

  absl::StatusOr<refit::Geometry> Hello(const refit::RefitInfo& info,
                                        const base::CancelScope& scope) override {
    return link_.Hello(info, scope);
  }
  bool connected() const override { return link_.connected(); }
  absl::Status Begin(const TransferPlan& plan, const base::CancelScope& scope) override {
    before_begin_ = CountAllocations();
    const absl::Status status = link_.Begin(plan, scope);
    after_begin_ = CountAllocations();
    return status;
  }
  absl::StatusOr<refit::DeviceSpan> Acquire(int64_t bucket,
                                            const base::CancelScope& scope) override {
    return link_.Acquire(bucket, scope);
  }
  absl::Status Submit(int64_t bucket, int64_t used, const refit::Event& filled,
                      const base::CancelScope& scope) override {
    return link_.Submit(bucket, used, filled, scope);
  }
  absl::StatusOr<Receipt> Commit(absl::Span<const base::Digest128> digests,
                                 const base::CancelScope& scope) override {
    fill_loop_ = CountAllocations().this_thread - after_begin_.this_thread;
    absl::StatusOr<Receipt> receipt = link_.Commit(digests, scope);
    begin_to_commit_ = CountAllocations().all_threads - before_begin_.all_threads;
    return receipt;
  }
  absl::Status Abort(const absl::Status& why, const base::CancelScope& scope) override {
    return link_.Abort(why, scope);
  }

  int64_t fill_loop() const { return fill_loop_; }
  int64_t begin_to_commit() const { return begin_to_commit_; }

 private:
  ipc::IpcLink link_;
  AllocationCount before_begin_{}, after_begin_{};
  int64_t fill_loop_ = -1;
  int64_t begin_to_commit_ = -1;
};

struct Counts {
  int64_t fill_loop = -1;        // of the trainer's thread, the most of all syncs
  int64_t begin_to_commit = -1;  // of both ends, the fewest
};

// Of a few syncs of a state, the first left out: it makes what later ones reuse.
Counts CountSyncs(const refit::RefitInfo& info) {
  const base::testing::SocketFolder directory;
  SynchronizerOptions options;
  options.endpoint = directory.endpoint();
  options.ring_slot_bytes = 64 << 10;
  auto host = fakes::EngineHost::Start(options.endpoint, info, /*faults=*/{}, {});
  EXPECT_THAT(host, IsOk());
  auto policy = fakes::SeededPolicy::Create(info, /*seed=*/1);
  EXPECT_THAT(policy, IsOk());
  native::NativeGeneration generation(options.endpoint);
  auto owned_link = std::make_unique<CountingLink>(
      options.endpoint, ipc::RingLayout{options.ring_slots, options.ring_slot_bytes});
  const CountingLink& link = *owned_link;
  ipc::IpcWeightSynchronizer synchronizer(options, policy->get(), &generation,
                                          std::move(owned_link));
  EXPECT_THAT(synchronizer.InitCommunicator(), IsOk());
  std::vector<int64_t> fill_loops, begin_to_commits;
  for (int sync = 0; sync < 8; ++sync) {
    (*policy)->Step();
    synchronizer.MarkStale();
    EXPECT_THAT(synchronizer.SyncWeights(), IsOk());
    if (sync == 0) continue;
    fill_loops.push_back(link.fill_loop());
    begin_to_commits.push_back(link.begin_to_commit());
  }
  const auto answer = (*host)->engine().Answer();
  EXPECT_THAT(answer, IsOk());
  EXPECT_EQ(answer->weights, fakes::AnswerDigest((*policy)->parameters()));
  return {*std::max_element(fill_loops.begin(), fill_loops.end()),
          *std::min_element(begin_to_commits.begin(), begin_to_commits.end())};
}

TEST(AllocationTest, TheCounterSeesEveryKind) {
  const AllocationCount before = CountAllocations();
  void* volatile kinds[] = {std::malloc(1), std::calloc(1, 1), std::aligned_alloc(64, 64),
                            ::operator new(1), ::operator new(64, std::align_val_t(64))};
  kinds[0] = std::realloc(kinds[0], 100);
  EXPECT_EQ(CountAllocations().this_thread - before.this_thread, 6);
  EXPECT_GE(CountAllocations().all_threads - before.all_threads, 6);
  for (int i = 0; i < 3; ++i) std::free(kinds[i]);
  ::operator delete(kinds[3]);
  ::operator delete(kinds[4], std::align_val_t(64));
}

TEST(AllocationTest, TheFillLoopAllocatesNothing) {
  EXPECT_EQ(CountSyncs(Qwen3Dense(1, 500)).fill_loop, 0);
  EXPECT_EQ(CountSyncs(SmallExperts(2, 16)).fill_loop, 0);
  EXPECT_EQ(CountSyncs(Vectors(20'000, 64)).fill_loop, 0);
}

// The same bytes in the same number of buckets, so that the messages are equally long.
TEST(AllocationTest, ManyTensorsCostAsManyAllocationsAsFew) {
  const Counts few = CountSyncs(Vectors(100, 12'800));
  const Counts many = CountSyncs(Vectors(20'000, 64));
  EXPECT_EQ(few.begin_to_commit, many.begin_to_commit);
  RecordProperty("allocations_begin_to_commit", static_cast<int>(many.begin_to_commit));
}

}  // namespace
}  // namespace weight_sync::benchmarks
