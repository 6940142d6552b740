// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// OnInterrupt: while it lives, a process that SIGINT, SIGTERM or SIGHUP ends tidies up first. A
// thread of its own waits for them, so that what tidies up is no signal handler; then the process
// dies of the signal, as it would have. A signal that was ignored (nohup) stays so.
//
// One at a time, made before any other thread, which would not leave signals to it.
//
//   const OnInterrupt on_interrupt([&] { std::filesystem::remove_all(staging); });
//   on_interrupt.Undisturbed([&] { PublishAll(); });   // a signal waits until this is over

#ifndef WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_ON_INTERRUPT_H_
#define WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_ON_INTERRUPT_H_

#include <signal.h>

#include <functional>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"

namespace weight_sync::tools {

class OnInterrupt {
 public:
  // `tidy_up` runs while the other threads go on.
  explicit OnInterrupt(std::function<void()> tidy_up);
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;
  ~OnInterrupt();

  void Undisturbed(absl::FunctionRef<void()> work);

 private:
  void Wait();

  const std::function<void()> tidy_up_;
  absl::Mutex undisturbed_;
  sigset_t before_;
  sigset_t signals_;
  base::UniqueFd caught_;
  base::UniqueFd done_;
  std::thread thread_;
};

}  // namespace weight_sync::tools

#endif  // WEIGHT_SYNC_TOOLS_WEIGHT_SYNC_COMMON_ON_INTERRUPT_H_
