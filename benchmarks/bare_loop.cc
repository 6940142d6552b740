// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/bare_loop.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <sstream>
#include <string>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "benchmarks/cores.h"
#include "benchmarks/states.h"
#include "benchmarks/stopwatch.h"

namespace weight_sync::benchmarks {

struct BareControl {
  enum class Task : int { kCopy, kDigest };
  Task task = Task::kCopy;
  sem_t start;                                     // the consumer sleeps here between tasks
  alignas(128) std::atomic<int64_t> published{0};  // slots since the start
  alignas(128) std::atomic<int64_t> released{0};
};

namespace {

constexpr char kRole[] = "--bare-consumer";
constexpr int64_t kSlotsOffset = 4096;
static_assert(sizeof(BareControl) <= kSlotsOffset);

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Calls copy(slot, offset, count) for each slot's worth of `bytes`.
template <typename Copy>
void ForEachSlot(std::byte* memory, const ipc::RingLayout& ring, int64_t first, int64_t bytes,
                 Copy copy) {
  int64_t turn = first;
  for (int64_t at = 0; at < bytes; at += ring.slot_bytes, ++turn) {
    copy(turn, memory + kSlotsOffset + turn % ring.slots * ring.slot_bytes, at,
         static_cast<size_t>(std::min(ring.slot_bytes, bytes - at)));
  }
}

absl::Status Consume(const std::string& config) {
  // It sleeps on a semaphore, where it would not see the parent's end.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::istringstream words(config);
  std::string name;
  int64_t bytes = 0;
  ipc::RingLayout ring;
  int core = kAnyCore;
  words >> name >> bytes >> ring.slots >> ring.slot_bytes >> core;
  WS_RETURN_IF_ERROR(PinThisThread(core));
  WS_ASSIGN_OR_RETURN(const base::SharedMemory memory,
                      base::SharedMemory::Open(name, kSlotsOffset + ring.slots * ring.slot_bytes));
  WS_ASSIGN_OR_RETURN(const fakes::Parameters table, fakes::Parameters::Create(Vectors(1, bytes)));
  std::byte* const to = table.view(0).data();
  BareControl& control = *reinterpret_cast<BareControl*>(memory.data());
  fakes::ReportLine("ready");
  for (;;) {
    while (::sem_wait(&control.start) != 0) {
    }
    if (control.task == BareControl::Task::kDigest) {
      fakes::ReportLine(base::DigestOf(to, static_cast<size_t>(bytes)).Hex());
      continue;
    }
    ForEachSlot(memory.data(), ring, control.released.load(), bytes,
                [&](int64_t turn, const std::byte* slot, int64_t at, size_t count) {
                  while (control.published.load(std::memory_order_acquire) <= turn) Pause();
                  std::memcpy(to + at, slot, count);
                  control.released.store(turn + 1, std::memory_order_release);
                });
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BareLoop>> BareLoop::Start(int64_t bytes,
                                                          const ipc::RingLayout& ring,
                                                          int consumer_core) {
  WS_ASSIGN_OR_RETURN(fakes::Parameters source, fakes::Parameters::Create(Vectors(1, bytes)));
  source.FillSeeded(2);
  WS_ASSIGN_OR_RETURN(base::SharedMemory memory,
                      base::SharedMemory::Create(kSlotsOffset + ring.slots * ring.slot_bytes));
  BareControl* const control = new (memory.data()) BareControl;
  PCHECK(::sem_init(&control->start, /*pshared=*/1, 0) == 0);
  WS_ASSIGN_OR_RETURN(
      fakes::ChildProcess consumer,
      fakes::ChildProcess::Start(kRole, absl::StrCat(memory.name(), " ", bytes, " ", ring.slots,
                                                     " ", ring.slot_bytes, " ", consumer_core)));
  WS_ASSIGN_OR_RETURN(const std::string report,
                      consumer.ReadLine(base::Deadline::After(absl::Minutes(1))));
  if (report != "ready") return absl::UnavailableError(absl::StrCat("bare consumer: ", report));
  WS_RETURN_IF_ERROR(memory.Unlink());
  return std::unique_ptr<BareLoop>(
      new BareLoop(std::move(source), std::move(memory), ring, std::move(consumer)));
}

BareLoop::BareLoop(fakes::Parameters source, base::SharedMemory memory, const ipc::RingLayout& ring,
                   fakes::ChildProcess consumer)
    : source_(std::move(source)),
      memory_(std::move(memory)),
      ring_(ring),
      consumer_(std::move(consumer)),
      control_(reinterpret_cast<BareControl*>(memory_.data())) {}

BareLoop::~BareLoop() { consumer_.Kill(SIGKILL); }

double BareLoop::Run() {
  const std::byte* const from = source_.view(0).data();
  control_->task = BareControl::Task::kCopy;
  const Stopwatch watch;
  PCHECK(::sem_post(&control_->start) == 0);
  ForEachSlot(memory_.data(), ring_, control_->published.load(), bytes(),
              [&](int64_t turn, std::byte* slot, int64_t at, size_t count) {
                while (turn - control_->released.load(std::memory_order_acquire) >= ring_.slots) {
                  Pause();
                }
                std::memcpy(slot, from + at, count);
                control_->published.store(turn + 1, std::memory_order_release);
              });
  while (control_->released.load(std::memory_order_acquire) != control_->published.load()) Pause();
  return watch.seconds();
}

absl::Status BareLoop::Verify() {
  control_->task = BareControl::Task::kDigest;
  PCHECK(::sem_post(&control_->start) == 0);
  WS_ASSIGN_OR_RETURN(const std::string digest,
                      consumer_.ReadLine(base::Deadline::After(absl::Minutes(1))));
  if (digest != base::DigestOf(source_.view(0).data(), static_cast<size_t>(bytes())).Hex()) {
    return absl::DataLossError("the bare loop's table differs from its source");
  }
  return absl::OkStatus();
}

std::optional<int> MaybeRunBareConsumer(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != kRole) return std::nullopt;
  fakes::ReportLine(Consume(fakes::ChildConfig()).ToString());
  return 1;
}

}  // namespace weight_sync::benchmarks
