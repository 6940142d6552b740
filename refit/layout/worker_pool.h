// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool: a few threads that do one piece of work together, again and again. They are started
// once, sleep in between, and nothing is allocated for a piece of work. Thread-safe: one piece of
// work at a time, others wait for it.
//
//   WorkerPool pool(4);
//   pool.Run([&](int worker) { CopyQuarter(worker); });   // all four are done

#ifndef WEIGHT_SYNC_REFIT_LAYOUT_WORKER_POOL_H_
#define WEIGHT_SYNC_REFIT_LAYOUT_WORKER_POOL_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace weight_sync::refit {

class WorkerPool {
 public:
  // `workers` is at least 1; whoever calls Run() is one of them.
  explicit WorkerPool(int workers);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls work(w) for each w below workers(), each in a thread of its own, and returns when all have
  // returned. `work` must not call Run() of this pool.
  void Run(absl::FunctionRef<void(int worker)> work);

 private:
  void Serve(int worker);

  absl::Mutex one_run_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  const absl::FunctionRef<void(int)>* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t run_ ABSL_GUARDED_BY(mutex_) = 0;  // how many there were
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;     // threads that have not returned from this one
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar started_;  // run_ or stop_ changed
  absl::CondVar finished_;
  std::vector<std::thread> threads_;
};

}  // namespace weight_sync::refit

#endif  // WEIGHT_SYNC_REFIT_LAYOUT_WORKER_POOL_H_
