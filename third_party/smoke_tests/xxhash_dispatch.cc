// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "third_party/smoke_tests/xxhash_dispatch.h"

#include "xxh_x86dispatch.h"

uint64_t DispatchedXxh3(const void* data, size_t size) { return XXH3_64bits(data, size); }

uint64_t DispatchedXxh3InTwoParts(const void* data, size_t size) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  XXH3_64bits_update(state, data, size / 2);
  XXH3_64bits_update(state, static_cast<const char*>(data) + size / 2, size - size / 2);
  const uint64_t digest = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return digest;
}
