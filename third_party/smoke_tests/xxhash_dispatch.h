// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// XXH3 as <xxh_x86dispatch.h> gives it. That header replaces the plain functions by macros, so a
// file that compares both keeps them apart.

#ifndef WEIGHT_SYNC_THIRD_PARTY_SMOKE_TESTS_XXHASH_DISPATCH_H_
#define WEIGHT_SYNC_THIRD_PARTY_SMOKE_TESTS_XXHASH_DISPATCH_H_

#include <cstddef>
#include <cstdint>

uint64_t DispatchedXxh3(const void* data, size_t size);
uint64_t DispatchedXxh3InTwoParts(const void* data, size_t size);

#endif  // WEIGHT_SYNC_THIRD_PARTY_SMOKE_TESTS_XXHASH_DISPATCH_H_
