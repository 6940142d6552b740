// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sharding against what torch's FSDP2 and DTensor really hold, on gloo, over 4 and 6 processes. Needs
// `tools/peers/setup torch`.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/sharding/sharding.h"
#include "refit/testing/box_elements.h"
#include "tools/peers/peer_environment.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using nlohmann::json;
using testing::FlatElements;

Sharding ShardingOf(const json& held, const std::vector<std::string>& placements) {
  // In the mesh's order, which JSON objects here do not keep.
  std::vector<Mesh::Dim> dims;
  for (const char* name : {"replica", "dp", "tp"}) {
    if (held["mesh"].contains(name)) dims.push_back({name, held["mesh"][name].get<int>()});
  }
  std::vector<Placement> parsed;
  for (const std::string& text : placements) parsed.push_back(Placement::Parse(text).value());
  return Sharding::FromPlacements(std::make_shared<const Mesh>(Mesh::Create(dims).value()), parsed,
                                  Shape::Create(held["shape"].get<std::vector<int64_t>>()).value())
      .value();
}

class TorchShardsPeerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string folder = ::testing::TempDir() + "/torch_shards";
    std::filesystem::create_directories(folder);
    auto torch = peers::FindPeerEnvironment("torch");
    if (torch.ok()) {
      const base::ProgramResult ran = base::RunProgram(
          {*torch + "/bin/python", "-I", "refit/sharding/peers/torch_shards_peer.py", folder});
      if (ran.exit_code != 0) torch = absl::InternalError(ran.output);
    }
    folder_ = new absl::StatusOr<std::string>(torch.ok() ? absl::StatusOr<std::string>(folder)
                                                         : torch.status());
  }
  static void TearDownTestSuite() { delete folder_; }

  void SetUp() override {
    if (absl::IsNotFound(folder_->status())) GTEST_SKIP() << folder_->status();
    ASSERT_THAT(*folder_, IsOk());
  }

  static json Rank(int size, int rank) {
    std::ifstream file(absl::StrCat(**folder_, "/", size, ".", rank, ".json"));
    return json::parse(file);
  }

  static absl::StatusOr<std::string>* folder_;
};

absl::StatusOr<std::string>* TorchShardsPeerTest::folder_ = nullptr;

TEST_F(TorchShardsPeerTest, EachRankHoldsItsBoxAndTogetherTheyAreTheFullTensor) {
  std::set<std::string> placements_seen;
  for (const int size : {4, 6}) {
    std::vector<json> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(Rank(size, rank));
    ASSERT_GE(ranks[0].size(), 14u);
    for (size_t c = 0; c < ranks[0].size(); ++c) {
      const json& first = ranks[0][c];
      SCOPED_TRACE(first.dump());
      const auto placements = first["placements"].get<std::vector<std::string>>();
      placements_seen.insert(placements.begin(), placements.end());
      const Sharding sharding = ShardingOf(first, placements);
      std::vector<int64_t> assembled(first["full"].size(), -1);
      for (int rank = 0; rank < size; ++rank) {
        const json& held = ranks[static_cast<size_t>(rank)][c];
        ASSERT_EQ(held["name"], first["name"]);
        const auto local = held["local"].get<std::vector<int64_t>>();
        const std::vector<int64_t> numbers =
            FlatElements(sharding.shape(), sharding.LocalBox(rank).value());
        ASSERT_EQ(local, numbers) << "rank " << rank;
        if (!sharding.Contributes(rank)) continue;
        for (size_t i = 0; i < numbers.size(); ++i) {
          int64_t& element = assembled[static_cast<size_t>(numbers[i])];
          ASSERT_EQ(element, -1) << "contributed twice";
          element = local[i];
        }
      }
      EXPECT_EQ(assembled, first["full"].get<std::vector<int64_t>>());
    }
  }
  // What the cases are there for.
  EXPECT_THAT(placements_seen, ::testing::IsSupersetOf({"_S(0, 2)", "S(0)", "S(1)", "S(2)", "R"}));
}

// As if FSDP came first: what the strided placement is there to tell.
TEST_F(TorchShardsPeerTest, ShardsThatAreTakenForPlainOnesAreNotWhatTheRanksHold) {
  int differ = 0;
  const json ranks[] = {Rank(6, 0), Rank(6, 1), Rank(6, 2)};
  for (const json& rank : ranks) {
    for (const json& held : rank) {
      if (!absl::StartsWith(held["name"].get<std::string>(), "columns")) continue;
      const Sharding plain = ShardingOf(held, {"S(0)", "S(0)"});
      const int number = static_cast<int>(&rank - ranks);
      differ += FlatElements(plain.shape(), plain.LocalBox(number).value()) !=
                        held["local"].get<std::vector<int64_t>>()
                    ? 1
                    : 0;
    }
  }
  EXPECT_GT(differ, 10);
}

}  // namespace
}  // namespace weight_sync::refit
