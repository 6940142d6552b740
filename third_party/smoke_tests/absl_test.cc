// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cassert>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/log/log.h"
#include "absl/log/scoped_mock_log.h"
#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(n, " is odd"));
  return n / 2;
}

TEST(AbslTest, StatusCarriesValueOrError) {
  EXPECT_THAT(Half(4), IsOkAndHolds(2));
  EXPECT_THAT(Half(3), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 is odd")));
}

TEST(AbslTest, LogReachesItsSinks) {
  absl::ScopedMockLog log(absl::MockLogDefault::kDisallowUnexpected);
  EXPECT_CALL(log, Log(absl::LogSeverity::kWarning, _, "slot 7"));
  log.StartCapturingLogs();
  LOG(WARNING) << "slot " << 7;
}

TEST(AbslTest, MutexWakesAWaiter) {
  absl::Mutex mutex;
  absl::flat_hash_map<std::string, int> seen;
  std::thread writer([&] {
    absl::MutexLock lock(&mutex);
    seen["weight"] = 1;
  });
  {
    absl::MutexLock lock(&mutex);
    auto written = [&] { return seen.contains("weight"); };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&written), absl::Seconds(30)));
  }
  writer.join();
}

TEST(AssertionsDeathTest, AreOnInOurCodeAndInAbseil) {
  EXPECT_DEATH(assert(1 + 1 == 3), "1 \\+ 1 == 3");
  const std::vector<int> numbers = {1, 2, 3};
  const absl::Span<const int> span(numbers);
  const volatile size_t past_the_end = 3;
  EXPECT_DEATH(static_cast<void>(span[past_the_end]), "");
}

}  // namespace
