// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// gtest's main for tests that start engine processes.

#include "fakes/engine_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  if (const std::optional<int> code = weight_sync::fakes::MaybeRunEngineProcess(argc, argv)) {
    return *code;
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
