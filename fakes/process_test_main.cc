// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// gtest's main for tests on fakes/process_test.h.

#include "fakes/process_test.h"
#include "gmock/gmock.h"

int main(int argc, char** argv) {
  if (const std::optional<int> code = weight_sync::fakes::MaybeRunChild(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
