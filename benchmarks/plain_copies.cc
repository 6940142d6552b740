// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/plain_copies.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/stopwatch.h"
#include "refit/layout/box.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/tensor_view.h"

namespace weight_sync::benchmarks {
namespace {

// Below this share of a memcpy a plain copy shows that something else was using the machine.
constexpr double kLeastPlainShare = 0.65;

}  // namespace

PlainCopies::PlainCopies(const std::byte* src, std::byte* dst, int64_t bytes,
                         const refit::CopyOptions& options)
    : src_(src), dst_(dst), bytes_(bytes), program_(options) {
  program_.StartBucket();
  program_.Append(0, refit::TensorView::Contiguous(src, refit::DType::kU8, {bytes}),
                  refit::Box::Whole({bytes}), 0);
}

void PlainCopies::Register(int repetitions, TorchPeer* torch) const {
  RegisterTimed(kMemcpy, repetitions, [this] {
    const Stopwatch watch;
    std::memcpy(dst_, src_, static_cast<size_t>(bytes_));
    return watch.seconds();
  });
  RegisterTimed(kPlain, repetitions, [this] {
    const Stopwatch watch;
    program_.Run(0, {&src_, 1}, dst_);
    return watch.seconds();
  });
  if (torch == nullptr) return;
  RegisterTimed(absl::StrCat(kPlain, kTorch), repetitions,
                [this, torch] { return torch->Run(absl::StrCat("copy ", bytes_ / 2)); });
}

void PlainCopies::RegisterInSlots(const std::string& name, int64_t slot_bytes, int slots,
                                  int repetitions) const {
  RegisterTimed(name, repetitions, [this, slot_bytes, slots] {
    const Stopwatch watch;
    int slot = 0;
    for (int64_t done = 0; done < bytes_; done += slot_bytes, slot = (slot + 1) % slots) {
      std::memcpy(dst_ + slot * slot_bytes, src_ + done,
                  static_cast<size_t>(std::min(slot_bytes, bytes_ - done)));
    }
    return watch.seconds();
  });
}

absl::Status PlainCopies::CheckQuiet(const Timings& timings) const {
  for (const std::string& name : {std::string(kPlain), absl::StrCat(kPlain, kTorch)}) {
    if (!timings.has(name) || !timings.has(kMemcpy)) continue;
    const double share = timings.best(kMemcpy) / timings.best(name);
    if (share < kLeastPlainShare) {
      return absl::FailedPreconditionError(
          absl::StrFormat("VOID: %s reached %.3f of a memcpy, and does %.2f on a quiet machine; "
                          "nothing above counts",
                          name, share, kLeastPlainShare));
    }
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::benchmarks
