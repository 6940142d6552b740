// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// NCCL as far as its version goes. With the environment variable TEST_NCCL at "abort" it aborts.

#include <stdlib.h>
#include <string.h>

extern "C" int ncclGetVersion(int* version) {
  const char* set = ::getenv("TEST_NCCL");
  if (set != nullptr && ::strcmp(set, "abort") == 0) ::abort();
  *version = 22809;
  return 0;
}
