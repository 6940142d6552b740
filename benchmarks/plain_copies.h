// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// PlainCopies: one block of memory copied to another by memcpy, by this library and by torch. memcpy
// is what a run's other figures are shares of; the other two tell whether the run counts.
//
//   PlainCopies copies(src, dst, 256 << 20, {});
//   copies.Register(/*repetitions=*/9, &torch);
//   ... RunSpecifiedBenchmarks(&timings), the table ...
//   return copies.CheckQuiet(timings);

#ifndef WEIGHT_SYNC_BENCHMARKS_PLAIN_COPIES_H_
#define WEIGHT_SYNC_BENCHMARKS_PLAIN_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "benchmarks/timings.h"
#include "benchmarks/torch_peer.h"
#include "refit/layout/copy_program.h"

namespace weight_sync::benchmarks {

class PlainCopies {
 public:
  // Of the benchmarks; torch's are called as ours are, and that.
  static constexpr char kMemcpy[] = "memcpy";
  static constexpr char kPlain[] = "plain copy";
  static constexpr char kTorch[] = ", torch";

  // An even number of bytes. Borrows the memory, which what it registers reads and writes.
  PlainCopies(const std::byte* src, std::byte* dst, int64_t bytes,
              const refit::CopyOptions& options);

  int64_t bytes() const { return bytes_; }

  // `torch` may be null; else its script knows "copy COUNT", of so many elements in bfloat16.
  void Register(int repetitions, TorchPeer* torch) const;
  // memcpy into so many slots at `dst` in turn.
  void RegisterInSlots(const std::string& name, int64_t slot_bytes, int slots,
                       int repetitions) const;

  // FailedPrecondition, which says that the run is void, where a plain copy shows that something
  // else was using the machine.
  absl::Status CheckQuiet(const Timings& timings) const;

 private:
  const std::byte* const src_;
  std::byte* const dst_;
  const int64_t bytes_;
  refit::CopyProgram program_;
};

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_PLAIN_COPIES_H_
