// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/layout/worker_pool.h"

#include "absl/log/check.h"

namespace weight_sync::refit {

WorkerPool::WorkerPool(int workers) {
  CHECK_GE(workers, 1);
  threads_.reserve(static_cast<size_t>(workers) - 1);
  for (int worker = 1; worker < workers; ++worker) {
    threads_.emplace_back([this, worker] { Serve(worker); });
  }
}

WorkerPool::~WorkerPool() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    started_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Run(absl::FunctionRef<void(int)> work) {
  absl::MutexLock one_run(&one_run_);
  {
    absl::MutexLock lock(&mutex_);
    work_ = &work;
    busy_ = static_cast<int>(threads_.size());
    ++run_;
    started_.SignalAll();
  }
  work(0);
  absl::MutexLock lock(&mutex_);
  while (busy_ > 0) finished_.Wait(&mutex_);
}

void WorkerPool::Serve(int worker) {
  int64_t served = 0;
  absl::MutexLock lock(&mutex_);
  for (;;) {
    while (run_ == served && !stop_) started_.Wait(&mutex_);
    if (stop_) return;
    served = run_;
    const absl::FunctionRef<void(int)> work = *work_;
    mutex_.Unlock();
    work(worker);
    mutex_.Lock();
    if (--busy_ == 0) finished_.Signal();
  }
}

}  // namespace weight_sync::refit
