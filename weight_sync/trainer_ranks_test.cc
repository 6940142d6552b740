// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weight_sync/trainer_ranks.h"

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/packing/packer.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "refit/version.h"

namespace weight_sync {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
constexpr refit::Geometry kGeometry = {4096, 128};

class TrainerRanksTest : public ::testing::Test {
 protected:
  TrainerRanksTest() : communicators_(refit::MakeThreadCommunicators(kRanks).value()) {}

  // What it returns on each rank.
  std::vector<absl::Status> OnAll(
      const std::function<absl::Status(int rank, const TrainerRanks& ranks)>& call) {
    std::vector<absl::Status> statuses(kRanks);
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r) {
      threads.emplace_back([&, r] {
        const size_t i = static_cast<size_t>(r);
        statuses[i] = call(r, TrainerRanks(communicators_[i].get()));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  // Each rank with `mine` where it is `failing`, and compiling with `compiled` where it is.
  std::vector<absl::Status> Prepare(int failing, const absl::Status& mine,
                                    const absl::Status& compiled) {
    return OnAll([&](int r, const TrainerRanks& ranks) {
      return ranks.Prepare(
          r == failing ? mine : absl::OkStatus(), r == 0 ? kGeometry : refit::Geometry{},
          [&](const refit::Geometry& geometry) {
            EXPECT_EQ(geometry.bucket_bytes, kGeometry.bucket_bytes);
            EXPECT_EQ(geometry.alignment, kGeometry.alignment);
            return r == failing ? compiled : absl::OkStatus();
          },
          scope_);
    });
  }

  const base::CancelScope scope_{base::Deadline::After(absl::Minutes(1))};
  std::vector<std::unique_ptr<refit::Communicator>> communicators_;
};

TEST_F(TrainerRanksTest, EveryRankCompilesForRankZerosGeometry) {
  EXPECT_THAT(Prepare(/*failing=*/-1, absl::OkStatus(), absl::OkStatus()), Each(IsOk()));
}

TEST_F(TrainerRanksTest, WhatFailsOnOneRankFailsOnAllAndTheNextMeetingWorks) {
  const absl::Status full = absl::ResourceExhaustedError("memory is full");
  const auto failed =
      Each(StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory is full")));
  for (int failing = 0; failing < kRanks; ++failing) {
    EXPECT_THAT(Prepare(failing, full, absl::OkStatus()), failed) << failing;
    EXPECT_THAT(Prepare(failing, absl::OkStatus(), full), failed) << failing;
    EXPECT_THAT(OnAll([&](int r, const TrainerRanks& ranks) {
                  return ranks.Conclude(r == failing ? full : absl::OkStatus(), scope_);
                }),
                failed)
        << failing;
    EXPECT_THAT(OnAll([&](int r, const TrainerRanks& ranks) {
                  return ranks.Share(r == failing ? full : absl::OkStatus(), 3, scope_).status();
                }),
                failed)
        << failing;
  }
  EXPECT_THAT(OnAll([&](int, const TrainerRanks& ranks) {
                return ranks.Conclude(absl::OkStatus(), scope_);
              }),
              Each(IsOk()));
}

TEST_F(TrainerRanksTest, RankZerosVersionIsSharedOrNone) {
  for (const std::optional<refit::Version> version :
       {std::optional<refit::Version>(7), std::optional<refit::Version>()}) {
    EXPECT_THAT(OnAll([&](int r, const TrainerRanks& ranks) {
                  const auto shared =
                      ranks.Share(absl::OkStatus(),
                                  r == 0 ? version : std::optional<refit::Version>(99), scope_);
                  EXPECT_THAT(shared, IsOkAndHolds(version)) << r;
                  return shared.status();
                }),
                Each(IsOk()));
  }
}

TEST_F(TrainerRanksTest, RanksAtDifferentMeetingsAreTold) {
  const auto statuses = OnAll([&](int r, const TrainerRanks& ranks) {
    return r == 1 ? ranks.Conclude(absl::OkStatus(), scope_)
                  : ranks.Share(absl::OkStatus(), 1, scope_).status();
  });
  EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 1"))));
}

TEST(OneTrainerRankTest, MeetsNobody) {
  const TrainerRanks ranks(nullptr);
  const base::CancelScope scope(base::Deadline::After(absl::Minutes(1)));
  const absl::Status gone = absl::UnavailableError("gone");
  const auto compile = [&](const refit::Geometry& geometry) {
    EXPECT_EQ(geometry.bucket_bytes, kGeometry.bucket_bytes);
    return absl::InternalError("compiled");
  };
  EXPECT_FALSE(ranks.several());
  EXPECT_EQ(ranks.Prepare(gone, kGeometry, compile, scope), gone);
  EXPECT_EQ(ranks.Prepare(absl::OkStatus(), kGeometry, compile, scope),
            absl::InternalError("compiled"));
  EXPECT_THAT(ranks.Share(absl::OkStatus(), 7, scope),
              IsOkAndHolds(std::optional<refit::Version>(7)));
  EXPECT_EQ(ranks.Share(gone, 7, scope).status(), gone);
  EXPECT_EQ(ranks.Conclude(gone, scope), gone);
  EXPECT_THAT(ranks.Conclude(absl::OkStatus(), scope), IsOk());
}

}  // namespace
}  // namespace weight_sync
