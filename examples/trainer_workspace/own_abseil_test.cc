// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// weight_sync is compiled against this workspace's Abseil (WORKSPACE, abseil.patch), not one of its
// own.

#include <cstdint>
#include <typeinfo>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/tensor/shape.h"

namespace {

using ::weight_sync::refit::Shape;

TEST(OwnAbseilTest, WeightSyncIsCompiledAgainstIt) {
  // Defined in an object file of weight_sync, with an absl::Span in its name for the linker: this
  // links only if both sides mean the same absl::Span.
  absl::StatusOr<Shape> (*create)(absl::Span<const int64_t>) = &Shape::Create;
  EXPECT_TRUE(create({2, 3}).ok());
  EXPECT_THAT(typeid(absl::Span<const int64_t>).name(), ::testing::HasSubstr("trainer_absl"));
}

}  // namespace
