// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/sharding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

std::shared_ptr<const Mesh> MakeMesh(std::vector<Mesh::Dim> dims, std::vector<int> ranks = {}) {
  return std::make_shared<const Mesh>(Mesh::Create(std::move(dims), std::move(ranks)).value());
}

Sharding Place(const std::shared_ptr<const Mesh>& mesh, const std::vector<Placement>& placements,
               const Shape& shape) {
  return Sharding::FromPlacements(mesh, placements, shape).value();
}

using Indices = std::vector<int64_t>;

// What a rank holds of a tensor of one dimension.
Indices Held(const Sharding& sharding, int rank) {
  const Box box = sharding.LocalBox(rank).value();
  Indices held(static_cast<size_t>(box.size[0]));
  std::iota(held.begin(), held.end(), box.begin[0]);
  return held;
}

// torch.chunk, with empty chunks where it returns fewer.
std::vector<Indices> Chunks(const Indices& indices, int64_t n) {
  const int64_t size = static_cast<int64_t>(indices.size()), chunk = (size + n - 1) / n;
  std::vector<Indices> chunks;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = std::min(i * chunk, size), end = std::min(begin + chunk, size);
    chunks.emplace_back(indices.begin() + begin, indices.begin() + end);
  }
  return chunks;
}

Indices Iota(int64_t size) {
  Indices all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(ShardingTest, ShardsAreTorchChunksWithShortAndEmptyOnes) {
  for (int n = 1; n <= 9; ++n) {
    const auto mesh = MakeMesh({{"dp", n}});
    for (int64_t size = 0; size <= 64; ++size) {
      const Sharding sharding = Place(mesh, {Placement::Shard(0)}, {size});
      const std::vector<Indices> chunks = Chunks(Iota(size), n);
      for (int rank = 0; rank < n; ++rank) {
        ASSERT_EQ(Held(sharding, rank), chunks[static_cast<size_t>(rank)]) << size << "/" << n;
        ASSERT_TRUE(sharding.Contributes(rank));
      }
    }
  }
  const auto sizes = [](int64_t size) {
    const Sharding sharding = Place(MakeMesh({{"dp", 4}}), {Placement::Shard(0)}, {size, 3});
    std::vector<int64_t> out;
    for (int rank = 0; rank < 4; ++rank) out.push_back(sharding.LocalBox(rank)->size[0]);
    return out;
  };
  EXPECT_THAT(sizes(10), ::testing::ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(sizes(5), ::testing::ElementsAre(2, 2, 1, 0));
  EXPECT_THAT(sizes(2), ::testing::ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(sizes(1), ::testing::ElementsAre(1, 0, 0, 0));
}

// FSDP2 over column parallelism: the tensor-parallel chunk first, then FSDP's chunk of it.
TEST(ShardingTest, StridedShardsOverTensorParallelismAreThePhysicalForm) {
  for (const int dp : {1, 2, 3, 4, 5, 8}) {
    for (const int tp : {1, 2, 3, 4, 8}) {
      const auto mesh = MakeMesh({{"dp", dp}, {"tp", tp}});
      for (int64_t size = 1; size <= 64; ++size) {
        const Sharding sharding =
            Place(mesh, {Placement::StridedShard(0, tp), Placement::Shard(0)}, {size});
        const std::vector<Indices> by_tp = Chunks(Iota(size), tp);
        for (int i = 0; i < dp; ++i) {
          for (int j = 0; j < tp; ++j) {
            ASSERT_EQ(Held(sharding, i * tp + j),
                      Chunks(by_tp[static_cast<size_t>(j)], dp)[static_cast<size_t>(i)])
                << size << " dp=" << dp << " tp=" << tp << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

// Where tensor parallelism divides the size, the arithmetic of the placements says the same:
// a strided shard takes its piece of each of `split_factor` chunks, the shard to the right cuts
// what is left.
TEST(ShardingTest, StridedShardsAgreeWithTheirIndexArithmeticWhereItIsExact) {
  for (const int dp : {1, 2, 3, 4, 5, 8}) {
    for (const int tp : {1, 2, 3, 4, 8}) {
      const auto mesh = MakeMesh({{"dp", dp}, {"tp", tp}});
      for (int64_t size = tp; size <= 64; size += tp) {
        const Sharding sharding =
            Place(mesh, {Placement::StridedShard(0, tp), Placement::Shard(0)}, {size});
        for (int i = 0; i < dp; ++i) {
          Indices strided;
          for (const Indices& piece : Chunks(Iota(size), tp)) {
            const Indices mine = Chunks(piece, dp)[static_cast<size_t>(i)];
            strided.insert(strided.end(), mine.begin(), mine.end());
          }
          // The pieces of all ranks of tp: each its own chunk's.
          Indices held;
          for (int j = 0; j < tp; ++j) {
            const Indices mine = Held(sharding, i * tp + j);
            held.insert(held.end(), mine.begin(), mine.end());
          }
          ASSERT_EQ(held, strided) << size << " dp=" << dp << " tp=" << tp;
        }
      }
    }
  }
}

// Every element once, over meshes of up to three dimensions and every combination of placements.
TEST(ShardingTest, BoxesOfTheContributingRanksAreTheTensorEachElementOnce) {
  const auto mesh = MakeMesh({{"a", 2}, {"b", 3}, {"c", 2}});
  int tried = 0;
  const std::vector<Placement> choices = {
      Placement::Replicate(),        Placement::Shard(0),           Placement::Shard(1),
      Placement::StridedShard(0, 2), Placement::StridedShard(0, 3), Placement::StridedShard(0, 6),
      Placement::StridedShard(1, 2)};
  for (const Placement& a : choices) {
    for (const Placement& b : choices) {
      for (const Placement& c : choices) {
        for (const Shape& shape : {Shape{7, 5}, Shape{1, 13}, Shape{12, 2}}) {
          const auto sharding = Sharding::FromPlacements(mesh, {a, b, c}, shape);
          if (!sharding.ok()) continue;
          ++tried;
          std::vector<int> held(static_cast<size_t>(shape.num_elements()));
          for (int rank = 0; rank < 12; ++rank) {
            if (!sharding->Contributes(rank)) continue;
            const Box box = sharding->LocalBox(rank).value();
            for (int64_t i = 0; i < box.size[0]; ++i) {
              for (int64_t j = 0; j < box.size[1]; ++j) {
                ++held[static_cast<size_t>((box.begin[0] + i) * shape[1] + box.begin[1] + j)];
              }
            }
          }
          ASSERT_THAT(held, ::testing::Each(1))
              << a.ToString() << b.ToString() << c.ToString() << shape;
        }
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(ShardingTest, OfReplicasTheFirstContributes) {
  const Sharding hsdp = Place(MakeMesh({{"replica", 2}, {"dp", 2}}),
                              {Placement::Replicate(), Placement::Shard(0)}, {4, 2});
  EXPECT_TRUE(hsdp.Contributes(0));
  EXPECT_TRUE(hsdp.Contributes(1));
  EXPECT_FALSE(hsdp.Contributes(2));
  EXPECT_FALSE(hsdp.Contributes(3));
  EXPECT_EQ(*hsdp.LocalBox(1), *hsdp.LocalBox(3));
}

TEST(ShardingTest, RanksOutsideOfTheMeshHoldNothing) {
  const Sharding stage = Place(MakeMesh({{"dp", 2}}, {2, 3}), {Placement::Shard(0)}, {4});
  EXPECT_EQ(stage.LocalBox(0), std::nullopt);
  EXPECT_FALSE(stage.Contributes(0));
  EXPECT_EQ(Held(stage, 3), (Indices{2, 3}));
  const Sharding whole = Sharding::OnRankZero({});
  EXPECT_TRUE(whole.Contributes(0));
  EXPECT_EQ(whole.LocalBox(0), Box::Whole({}));
  EXPECT_EQ(whole.LocalBox(1), std::nullopt);
}

TEST(ShardingTest, ExpertsMayBeCutAlongTheirAxisAndAnother) {
  const Sharding experts = Place(MakeMesh({{"ep", 4}, {"dp", 2}}),
                                 {Placement::Shard(0), Placement::Shard(-1)}, {6, 8, 10});
  const Box box = experts.LocalBox(3).value();  // ep 1, dp 1
  EXPECT_EQ(box.ToString(), "[2, 0, 5]+[2, 8, 5]");
  EXPECT_EQ(experts.LocalBox(7)->num_elements(), 0);  // 6 experts over 4 ranks: 2, 2, 2, 0
}

TEST(ShardingTest, APartitionSpecCutsByItsMajorMeshDimensionFirst) {
  const auto mesh = MakeMesh({{"fsdp", 2}, {"tp", 3}});
  const Sharding sharding =
      Sharding::FromPartitionSpec(mesh, {{"tp", "fsdp"}, {}}, {12, 5}).value();
  for (int fsdp = 0; fsdp < 2; ++fsdp) {
    for (int tp = 0; tp < 3; ++tp) {
      const Box box = sharding.LocalBox(fsdp * 3 + tp).value();
      EXPECT_EQ(box.begin[0], (tp * 2 + fsdp) * 2);
      EXPECT_EQ(box.size[0], 2);
      EXPECT_EQ(box.size[1], 5);
    }
  }
  EXPECT_FALSE(Sharding::FromPartitionSpec(mesh, {{}, {"tp"}}, {2, 6})->Contributes(3));
}

TEST(ShardingTest, WhatCannotBeIsRefusedWithTheReason) {
  const auto mesh = MakeMesh({{"dp", 2}, {"tp", 2}});
  const auto refused = [&](const std::vector<Placement>& placements, const char* why) {
    EXPECT_THAT(Sharding::FromPlacements(mesh, placements, {4, 4}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({Placement::Shard(0)}, "1 placements on the mesh (dp=2, tp=2)");
  refused({Placement::Partial(), Placement::Shard(0)}, "P on 'dp' of [4, 4]: a parameter is not");
  refused({Placement::Shard(2), Placement::Shard(0)}, "there is no such dimension");
  refused({Placement::Shard(-3), Placement::Shard(0)}, "there is no such dimension");
  refused({Placement::StridedShard(0, 2), Placement::Shard(1)}, "the split factor is not the size");
  refused({Placement::StridedShard(0, 3), Placement::Shard(0)}, "the split factor is not the size");
  const auto refused_spec = [&](const std::vector<std::vector<std::string>>& spec,
                                const char* why) {
    EXPECT_THAT(Sharding::FromPartitionSpec(mesh, spec, {4, 3}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused_spec({{"pp"}}, "there is no 'pp'");
  refused_spec({{"dp"}, {"dp"}}, "'dp' is used twice");
  refused_spec({{}, {"tp"}}, "dimension 1 does not divide into 2 equal parts");
  refused_spec({{}, {}, {}}, "it has 3 dimensions");
}

}  // namespace
}  // namespace weight_sync::refit
