// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counts the allocations of this process: malloc, calloc, realloc and the aligned ones, and with
// them operator new, which calls malloc. Linking this replaces the C library's functions, so it is
// for glibc without sanitizers, which replace them too.
//
//   const AllocationCount before = CountAllocations();
//   ...
//   EXPECT_EQ(CountAllocations().this_thread, before.this_thread);

#ifndef WEIGHT_SYNC_BENCHMARKS_ALLOCATION_COUNTER_H_
#define WEIGHT_SYNC_BENCHMARKS_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace weight_sync::benchmarks {

struct AllocationCount {
  int64_t this_thread;
  int64_t all_threads;
};

AllocationCount CountAllocations();

}  // namespace weight_sync::benchmarks

#endif  // WEIGHT_SYNC_BENCHMARKS_ALLOCATION_COUNTER_H_
