// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/worker_pool.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::testing::Each;

TEST(WorkerPoolTest, EveryWorkerDoesItsShareOfEveryPieceOfWork) {
  for (int workers = 1; workers <= 4; ++workers) {
    WorkerPool pool(workers);
    ASSERT_EQ(pool.workers(), workers);
    std::vector<int> times(static_cast<size_t>(workers));  // not atomic: Run() orders them
    for (int run = 1; run <= 200; ++run) {
      pool.Run([&](int worker) { ++times[static_cast<size_t>(worker)]; });
      ASSERT_THAT(times, Each(run));
    }
  }
}

TEST(WorkerPoolTest, WorkersRunAtTheSameTimeInThreadsOfTheirOwn) {
  WorkerPool pool(3);
  absl::Mutex mutex;
  std::set<std::thread::id> threads;
  auto* const all_here = new absl::Barrier(3);  // nobody gets past it alone
  pool.Run([&](int) {
    const bool last = all_here->Block();
    if (last) delete all_here;
    absl::MutexLock lock(&mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
}

TEST(WorkerPoolTest, PiecesOfWorkOfSeveralThreadsDoNotMix) {
  WorkerPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  std::atomic<bool> mixed{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        pool.Run([&](int worker) {
          if (worker == 0 && inside.fetch_add(1) != 0) mixed = true;
          ++done;
          if (worker == 0) --inside;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(mixed);
  EXPECT_EQ(done, 3 * 50 * 2);
}

}  // namespace
}  // namespace weight_sync::refit
