// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/device/device.h"

#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;

TEST(DeviceTest, HostWorkIsDoneAtOnce) {
  const Stream stream = Stream::Host();
  EXPECT_TRUE(stream.device() == Device::Host());
  const Event event = Event::Complete();
  EXPECT_TRUE(event.done());
  EXPECT_THAT(event.Wait(base::Deadline::After(absl::ZeroDuration())), IsOk());
}

TEST(DeviceTest, OrdinalsAreDifferentDevices) {
  Device other;
  other.ordinal = 1;
  EXPECT_FALSE(other == Device::Host());
}

}  // namespace
}  // namespace weight_sync::refit
