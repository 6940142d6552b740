// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tools/weight_sync/common/on_interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/log/check.h"

namespace weight_sync::tools {

OnInterrupt::OnInterrupt(std::function<void()> tidy_up) : tidy_up_(std::move(tidy_up)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    PCHECK(::sigaction(signal, nullptr, &action) == 0);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  PCHECK(::pthread_sigmask(SIG_BLOCK, &signals_, &before_) == 0);
  caught_ = base::UniqueFd(::signalfd(-1, &signals_, SFD_CLOEXEC));
  done_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC));
  PCHECK(caught_.valid() && done_.valid());
  thread_ = std::thread([this] { Wait(); });
}

OnInterrupt::~OnInterrupt() {
  const uint64_t one = 1;
  PCHECK(::write(done_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
  PCHECK(::pthread_sigmask(SIG_SETMASK, &before_, nullptr) == 0);
}

void OnInterrupt::Undisturbed(absl::FunctionRef<void()> work) {
  const absl::MutexLock lock(&undisturbed_);
  work();
}

void OnInterrupt::Wait() {
  struct pollfd events[] = {{caught_.get(), POLLIN, 0}, {done_.get(), POLLIN, 0}};
  while (::poll(events, 2, -1) < 0) PCHECK(errno == EINTR);
  if (events[0].revents == 0) return;
  struct signalfd_siginfo info;
  PCHECK(::read(caught_.get(), &info, sizeof(info)) == sizeof(info));
  const absl::MutexLock lock(&undisturbed_);
  tidy_up_();
  const int signal = static_cast<int>(info.ssi_signo);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
}

}  // namespace weight_sync::tools
