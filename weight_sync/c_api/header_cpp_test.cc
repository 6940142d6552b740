// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// weight_sync.h as C++, where the program is linked with libweight_sync.so itself.

#include "weight_sync/c_api/weight_sync.h"

int main() { return ws_abi_version() >> 16 == WS_ABI_MAJOR ? 0 : 1; }
