// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

// glibc's own, under the names that it exports for replacements to call.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace weight_sync::benchmarks {
namespace {

thread_local int64_t this_thread = 0;
std::atomic<int64_t> all_threads{0};

void Count() {
  ++this_thread;
  all_threads.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

AllocationCount CountAllocations() { return {this_thread, all_threads.load()}; }

extern "C" {

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  Count();
  return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

}  // namespace weight_sync::benchmarks
