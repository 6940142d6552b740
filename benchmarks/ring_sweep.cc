// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/ring_sweep.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "benchmarks/cores.h"
#include "benchmarks/states.h"
#include "benchmarks/sync_pair.h"

namespace weight_sync::benchmarks {
namespace {

void PrintTable(const RingSweep& sweep, const std::string& what, int64_t bytes,
                std::vector<std::vector<double>> seconds) {
  absl::PrintF("\n%s: GB/s, best / median\n%8s", what, "KiB");
  for (const int32_t slots : sweep.slots) {
    absl::PrintF("   %14s", absl::StrCat(slots, " slots"));
  }
  size_t cell = 0;
  for (const int64_t slot_bytes : sweep.slot_bytes) {
    absl::PrintF("\n%8d", slot_bytes / 1024);
    for (size_t i = 0; i < sweep.slots.size(); ++i) {
      std::vector<double>& times = seconds[cell++];
      std::sort(times.begin(), times.end());
      const double gigabytes = static_cast<double>(bytes) / 1e9;
      absl::PrintF("   %6.2f / %5.2f", gigabytes / times.front(),
                   gigabytes / times[times.size() / 2]);
    }
  }
  absl::PrintF("\n");
}

}  // namespace

RingSweep FullSweep(int repetitions) {
  constexpr int64_t kKiB = 1024;
  return {{{"dense", Qwen3Dense(14, 75'968)}, {"experts of 48 KiB", SmallExperts(29, 128)}},
          {2, 3, 4, 6, 8},
          {64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB, 1024 * kKiB, 2048 * kKiB, 4096 * kKiB,
           8192 * kKiB},
          repetitions,
          kEngineCore};
}

RingSweep SmokeSweep() {
  return {{{"dense", Qwen3Dense(1, 100)}, {"experts of 48 KiB", SmallExperts(1, 2)}},
          {2, 3},
          {64 << 10},
          2,
          kAnyCore};
}

absl::Status Run(const RingSweep& sweep) {
  for (const auto& [name, info] : sweep.states) {
    WS_ASSIGN_OR_RETURN(const auto pair, SyncPair::Start(info, sweep.engine_core));
    std::vector<std::vector<double>> off(sweep.slots.size() * sweep.slot_bytes.size());
    std::vector<std::vector<double>> on = off;
    for (int repetition = 0; repetition < sweep.repetitions; ++repetition) {
      size_t cell = 0;
      for (const int64_t slot_bytes : sweep.slot_bytes) {
        for (const int32_t slots : sweep.slots) {
          WS_RETURN_IF_ERROR(pair->Connect({slots, slot_bytes}));
          WS_RETURN_IF_ERROR(pair->Sync(/*wire_digests=*/false).status());  // touches the ring
          WS_ASSIGN_OR_RETURN(const double off_seconds, pair->Sync(/*wire_digests=*/false));
          WS_ASSIGN_OR_RETURN(const double on_seconds, pair->Sync(/*wire_digests=*/true));
          off[cell].push_back(off_seconds);
          on[cell].push_back(on_seconds);
          ++cell;
        }
      }
      pair->Step();
      WS_RETURN_IF_ERROR(pair->Sync(/*wire_digests=*/true).status());
      WS_RETURN_IF_ERROR(pair->Verify());
    }
    PrintTable(sweep, name + ", digests off", pair->bytes(), std::move(off));
    PrintTable(sweep, name + ", digests on", pair->bytes(), std::move(on));
  }
  return absl::OkStatus();
}

}  // namespace weight_sync::benchmarks
