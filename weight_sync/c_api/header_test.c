/* Copyright 2026 The weight_sync Authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * weight_sync.h is C99. Compiled with -pedantic-errors, and once more as C++ (header_cpp_test.cc). */

#include <stdio.h>

#include "weight_sync/c_api/weight_sync.h"

/* What callers were compiled with stays where it is, in every version from 1.0 on. */
static int Wrong(const char* what, size_t is, size_t must) {
  if (is == must) return 0;
  printf("%s is %u, not %u\n", what, (unsigned)is, (unsigned)must);
  return 1;
}
#define SIZE(type, must) Wrong("sizeof(" #type ")", sizeof(type), must)
#define PLACE(type, member, must) Wrong(#type "." #member, offsetof(type, member), must)

int main(void) {
  int wrong = 0;
  wrong += SIZE(ws_status, 40);
  wrong += SIZE(ws_source_options, 104); /* 96 in 1.0 */
  wrong += SIZE(ws_communicator_options, 48);
  wrong += SIZE(ws_tensor, 104);
  wrong += SIZE(ws_mesh, 40);
  wrong += SIZE(ws_sharding, 32);
  wrong += SIZE(ws_array, 56);
  wrong += SIZE(ws_binding, 104);
  wrong += SIZE(ws_geometry, 24);
  wrong += SIZE(ws_bucket, 24);
  wrong += SIZE(ws_piece, 40);
  wrong += SIZE(ws_memory, 64);
  wrong += PLACE(ws_status, text_length, 32);
  wrong += PLACE(ws_source_options, scan_period, 40);
  wrong += PLACE(ws_source_options, checkpoint, 64);
  wrong += PLACE(ws_source_options, snapshots, 72);
  wrong += PLACE(ws_source_options, communicator, 88);
  wrong += PLACE(ws_source_options, copy_threads, 96);
  wrong += PLACE(ws_communicator_options, port, 40);
  wrong += PLACE(ws_tensor, shape, 32);
  wrong += PLACE(ws_tensor, bytes, 96);
  wrong += PLACE(ws_mesh, ranks, 32);
  wrong += PLACE(ws_sharding, partition_spec, 24);
  wrong += PLACE(ws_array, sharding, 48);
  wrong += PLACE(ws_binding, dlpack, 24);
  wrong += PLACE(ws_binding, data, 56);
  wrong += PLACE(ws_binding, strides, 96);
  wrong += PLACE(ws_geometry, alignment, 16);
  wrong += PLACE(ws_bucket, pieces, 16);
  wrong += PLACE(ws_piece, bytes, 32);
  wrong += PLACE(ws_memory, release, 48);
  if (ws_abi_version() != (((uint32_t)WS_ABI_MAJOR << 16) | WS_ABI_MINOR)) {
    printf("the library is of ABI version %x\n", (unsigned)ws_abi_version());
    ++wrong;
  }
  return wrong;
}
