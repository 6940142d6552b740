// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/options.h"

#include <functional>
#include <limits>
#include <ostream>
#include <string>

#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

SynchronizerOptions Good() {
  SynchronizerOptions options;
  options.endpoint = "/tmp/engine.sock";
  return options;
}

TEST(CheckOptionsTest, TheDefaultsWithAnEndpointAreGood) {
  EXPECT_THAT(CheckOptions(Good()), IsOk());
}

TEST(CheckOptionsTest, TheExtremesAreGood) {
  SynchronizerOptions options = Good();
  options.endpoint = "/" + std::string(106, 'e');  // 107 bytes, what an address holds
  options.ring_slots = 4096;
  options.ring_slot_bytes = 64;
  options.policy_version = std::numeric_limits<refit::Version>::max() / 2;
  options.engine_version = 0;
  options.deep_verification_every = std::numeric_limits<int>::max();
  options.connect_timeout = absl::Nanoseconds(1);
  options.sync_timeout = absl::InfiniteDuration();
  EXPECT_THAT(CheckOptions(options), IsOk());
  options.ring_slots = 1;
  EXPECT_THAT(CheckOptions(options), IsOk());
}

struct BadSetting {
  const char* what;
  const char* setting;  // both must be in the message
  const char* value;
  std::function<void(SynchronizerOptions&)> spoil;
};

void PrintTo(const BadSetting& bad, std::ostream* os) { *os << bad.what; }

class BadSettingTest : public ::testing::TestWithParam<BadSetting> {};

TEST_P(BadSettingTest, IsNamedWithItsValue) {
  SynchronizerOptions options = Good();
  GetParam().spoil(options);
  EXPECT_THAT(CheckOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(GetParam().setting), HasSubstr(GetParam().value))));
}

const BadSetting kBadSettings[] = {
    {"EndpointMissing", "endpoint", "''", [](auto& o) { o.endpoint.clear(); }},
    {"EndpointRelative", "endpoint", "'e.sock'", [](auto& o) { o.endpoint = "e.sock"; }},
    {"EndpointADirectory", "endpoint", "'/tmp/'", [](auto& o) { o.endpoint = "/tmp/"; }},
    {"EndpointTooLong", "endpoint", "108 bytes",
     [](auto& o) { o.endpoint = "/" + std::string(107, 'e'); }},
    {"NoSlots", "ring_slots", " 0;", [](auto& o) { o.ring_slots = 0; }},
    {"NegativeSlots", "ring_slots", "-1", [](auto& o) { o.ring_slots = -1; }},
    {"TooManySlots", "ring_slots", "4097", [](auto& o) { o.ring_slots = 4097; }},
    {"EmptySlot", "ring_slot_bytes", " 0;", [](auto& o) { o.ring_slot_bytes = 0; }},
    {"NegativeSlot", "ring_slot_bytes", "-64", [](auto& o) { o.ring_slot_bytes = -64; }},
    {"OddSlot", "ring_slot_bytes", "100", [](auto& o) { o.ring_slot_bytes = 100; }},
    {"RingBeyondSixtyFourBits", "ring_slot_bytes", "4611686018427387904",
     [](auto& o) { o.ring_slot_bytes = int64_t{1} << 62; }},
    {"NegativePolicyVersion", "policy_version", "-1", [](auto& o) { o.policy_version = -1; }},
    {"NegativeEngineVersion", "engine_version", "-2", [](auto& o) { o.engine_version = -2; }},
    {"NegativeVerification", "deep_verification_every", "-1",
     [](auto& o) { o.deep_verification_every = -1; }},
    {"NoConnectTimeout", "connect_timeout", "0",
     [](auto& o) { o.connect_timeout = absl::ZeroDuration(); }},
    {"NegativeSyncTimeout", "sync_timeout", "-3s",
     [](auto& o) { o.sync_timeout = -absl::Seconds(3); }},
    {"NoCleanupTimeout", "cleanup_timeout", "0",
     [](auto& o) { o.cleanup_timeout = absl::ZeroDuration(); }},
};

INSTANTIATE_TEST_SUITE_P(Every, BadSettingTest, ::testing::ValuesIn(kBadSettings),
                         [](const auto& info) { return info.param.what; });

}  // namespace
}  // namespace weight_sync
