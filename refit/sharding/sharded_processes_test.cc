// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Trainers of four and six real processes, by shared memory and by TCP: splits that do not come out
// even, a process that dies and one that calls in another order. What must come out is what MapSource
// makes of the whole arrays.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/contribute.h"
#include "refit/device/device.h"
#include "refit/layout/box.h"
#include "refit/layout/copy_program.h"
#include "refit/maps/all_families.h"
#include "refit/maps/family.h"
#include "refit/maps/map_source.h"
#include "refit/maps/model_config.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/bucket.h"
#include "refit/packing/packer.h"
#include "refit/read_guard.h"
#include "refit/refit_info.h"
#include "refit/refit_source.h"
#include "refit/sharding/communicator.h"
#include "refit/sharding/communicators/rank_processes.h"
#include "refit/sharding/mesh.h"
#include "refit/sharding/placement.h"
#include "refit/sharding/sharded_source.h"
#include "refit/sharding/sharding.h"
#include "refit/tensor/dtype.h"
#include "refit/tensor/shape.h"
#include "refit/tensor/tensor_view.h"
#include "refit/tensor_digest.h"
#include "refit/testing/box_elements.h"
#include "refit/testing/model_spec.h"
#include "refit/testing/run_refit.h"
#include "refit/version.h"

namespace weight_sync::refit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ModelSpec;
using testing::RankProcesses;
using ::testing::StartsWith;
using Side = RankProcesses::Side;

constexpr absl::Duration kLong = absl::Minutes(2);
constexpr absl::Duration kAtOnce = absl::Seconds(30);  // did not wait for a deadline

// What a process declares.
using Cut = std::function<Sharding(const Shape&, int process)>;

Cut By(std::vector<Mesh::Dim> dims, std::vector<Placement> placements) {
  auto mesh = std::make_shared<const Mesh>(Mesh::Create(std::move(dims)).value());
  return [mesh, placements = std::move(placements)](const Shape& shape, int) {
    return Sharding::FromPlacements(mesh, placements, shape).value();
  };
}

// The trainer's arrays, whole, and what becomes of them: made before the processes are.
class Trainer {
 public:
  Trainer(const ModelSpec& model, const std::string& layout, const Geometry& geometry, Cut cut)
      : map_(MapOf(model, layout)), geometry_(geometry), cut_(std::move(cut)) {
    std::mt19937 rng(5);
    std::vector<TrainerArray> arrays;
    for (const WeightMap::TrainerTensor& tensor : map_.trainer()) {
      std::vector<std::byte>& bytes =
          wholes_.emplace_back(static_cast<size_t>(tensor.shape.num_elements() * kElement));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng());
      arrays.push_back(
          {tensor.name, TensorView::Contiguous(bytes.data(), DType::kBF16, tensor.shape)});
    }
    StepGate gate;
    auto source = MapSource::Create(map_, arrays, nullptr, &gate).value();
    buckets_ = Pack(source->info(), geometry_).value();
    expected_ = testing::RunRefit(*source, geometry_).value();
  }

  static constexpr int64_t kElement = 2;

  const WeightMap& map() const { return map_; }
  std::vector<ShardedSpec> Specs(int process) const {
    std::vector<ShardedSpec> specs;
    for (const WeightMap::TrainerTensor& tensor : map_.trainer()) {
      specs.push_back({tensor.name, DType::kBF16, cut_(tensor.shape, process)});
    }
    return specs;
  }
  const std::vector<std::byte>& whole(size_t tensor) const { return wholes_[tensor]; }
  const Geometry& geometry() const { return geometry_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const std::vector<std::vector<std::byte>>& expected() const { return expected_; }

 private:
  static WeightMap MapOf(const ModelSpec& model, const std::string& layout) {
    const ModelConfig config = ParseModelConfig(testing::HubConfigJson(model)).value();
    const FamilyRegistry families = AllFamilies();
    return WeightMap::Build(*families.Find(config.model_type).value(), config, {layout}, {})
        .value();
  }

  const WeightMap map_;
  const Geometry geometry_;
  const Cut cut_;
  std::vector<std::vector<std::byte>> wholes_;  // by trainer tensor
  std::vector<Bucket> buckets_;
  std::vector<std::vector<std::byte>> expected_;  // by HF tensor
};

// Counts the calls.
class CountingCommunicator : public Communicator {
 public:
  explicit CountingCommunicator(Communicator* communicator) : communicator_(communicator) {}
  int TakeCalls() { return std::exchange(calls_, 0); }

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  absl::Status BeginRound(int64_t tag, const absl::Status& mine,
                          const base::CancelScope& scope) override {
    ++calls_;
    return communicator_->BeginRound(tag, mine, scope);
  }
  absl::Status Gather(int64_t tag, absl::Span<const int64_t> sizes, Write write, Read read,
                      const base::CancelScope& scope) override {
    ++calls_;
    return communicator_->Gather(tag, sizes, write, read, scope);
  }
  absl::StatusOr<int64_t> Broadcast(int64_t tag, int64_t value,
                                    const base::CancelScope& scope) override {
    ++calls_;
    return communicator_->Broadcast(tag, value, scope);
  }
  absl::Status EndRound(const absl::Status& mine, const base::CancelScope& scope) override {
    ++calls_;
    return communicator_->EndRound(mine, scope);
  }

 private:
  Communicator* const communicator_;
  int calls_ = 0;
};

// What one process has of it.
class Rank {
 public:
  Rank(const Trainer& trainer, Communicator& communicator, const CopyOptions& options = {})
      : trainer_(trainer), communicator_(communicator) {
    const std::vector<ShardedSpec> specs = trainer.Specs(communicator.rank());
    source_ = ShardedSource::Create(trainer.map(), specs, nullptr, &gate_, &communicator).value();
    source_->UseCopyOptions(options);
    Compile();
    for (size_t t = 0; t < specs.size(); ++t) {
      const Sharding& sharding = specs[t].sharding;
      const std::optional<Box> box = sharding.LocalBox(communicator.rank());
      if (!box.has_value()) continue;  // on other ranks' mesh
      storage_.push_back(
          testing::BoxBytes(trainer.whole(t), sharding.shape(), Trainer::kElement, *box));
      shards_.push_back(
          {specs[t].name,
           TensorView::Contiguous(storage_.back().data(), specs[t].dtype, box->shape()),
           communicator.rank()});
    }
  }

  std::vector<std::vector<std::byte>>& storage() { return storage_; }

  void Compile() { program_ = source_->Compile(trainer_.buckets()).value(); }
  absl::Status Bind(Version version) { return source_->Bind(version, shards_); }

  // A whole sync, as whichever process this is. Process 0 gives DataLoss for what is not as it must be.
  absl::Status Sync(Version version) {
    WS_RETURN_IF_ERROR(Bind(version));
    const base::CancelScope scope(base::Deadline::After(kLong));
    if (communicator_.rank() != 0) {
      return Contribute(*program_, trainer_.buckets().size(), version, scope);
    }
    WS_ASSIGN_OR_RETURN(const ReadGuard guard, program_->Begin(version, scope));
    WS_ASSIGN_OR_RETURN(const auto table,
                        testing::FillTable(source_->info(), *program_, trainer_.buckets(),
                                           trainer_.geometry().bucket_bytes));
    absl::Status compared;
    for (int t = 0; t < source_->info().size(); ++t) {
      const TensorSpec& spec = source_->info()[t];
      const std::vector<std::byte>& expected = trainer_.expected()[static_cast<size_t>(t)];
      WS_ASSIGN_OR_RETURN(const base::Digest128 digest, source_->ReferenceDigest(t));
      if (table[static_cast<size_t>(t)] != expected ||
          digest != TensorDigest(spec.name,
                                 TensorView::Contiguous(expected.data(), spec.dtype, spec.shape))) {
        compared = absl::DataLossError(absl::StrCat(spec.name, " differs"));
      }
    }
    WS_RETURN_IF_ERROR(guard.Unchanged());
    return compared;
  }

  // The same of a process other than 0 that fills these buckets.
  absl::Status SyncOf(
      Version version, const std::vector<int>& buckets,
      const std::function<void()>& filled = [] {}) {
    WS_RETURN_IF_ERROR(Bind(version));
    const base::CancelScope scope(base::Deadline::After(kLong));
    WS_ASSIGN_OR_RETURN(const ReadGuard guard, program_->Begin(version, scope));
    Stream stream = Stream::Host();
    for (const int bucket : buckets) {
      WS_RETURN_IF_ERROR(program_->Fill(bucket, {}, stream).status());
    }
    filled();
    return guard.Unchanged();
  }

 private:
  const Trainer& trainer_;
  Communicator& communicator_;
  StepGate gate_;
  std::unique_ptr<ShardedSource> source_;
  std::unique_ptr<Program> program_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<ShardArray> shards_;
};

// Dimensions of 10, 5, 2 and 1: over four ranks some are short, and some empty.
ModelSpec Uneven() {
  ModelSpec model = testing::TinyModel("Llama");
  model.vocab = 10;
  model.mlp = 5;
  model.hidden = 2;
  model.heads = model.kv_heads = model.head_dim = 1;
  return model;
}

// Dimensions of 7, which neither 3 nor 2 divides.
ModelSpec Sevens() {
  ModelSpec model = testing::TinyModel("Llama");
  model.vocab = model.mlp = model.hidden = model.head_dim = 7;
  model.heads = model.kv_heads = 1;
  return model;
}

// Five experts over four ranks.
ModelSpec FiveExperts() {
  ModelSpec model = testing::TinyModel("Moe");
  model.experts = 5;
  return model;
}

// FSDP over TP as torch has it where norms are not in TP's plan: each TP rank has them on a mesh of its
// own, {0, 2} or {1, 3} of 4.
Cut NormsOnMeshesOfTheirOwn(int dp) {
  return [dp](const Shape& shape, int process) {
    if (shape.rank() > 1) {
      return By({{"dp", dp}, {"tp", 2}}, {Placement::StridedShard(0, 2), Placement::Shard(0)})(
          shape, process);
    }
    std::vector<int> ranks;
    for (int r = process % 2; r < 2 * dp; r += 2) ranks.push_back(r);
    const auto mesh = std::make_shared<const Mesh>(Mesh::Create({{"dp", dp}}, ranks).value());
    return Sharding::FromPlacements(mesh, {Placement::Shard(0)}, shape).value();
  };
}

// Norms that only ranks 1 and 3 hold at all, as all of them say.
Sharding NormsElsewhere(const Shape& shape, int process) {
  if (shape.rank() > 1) return By({{"dp", 4}}, {Placement::Shard(0)})(shape, process);
  const auto mesh = std::make_shared<const Mesh>(Mesh::Create({{"dp", 2}}, {1, 3}).value());
  return Sharding::FromPlacements(mesh, {Placement::Shard(0)}, shape).value();
}

struct Scheme {
  std::string name;
  int processes;
  ModelSpec model;
  std::string layout;
  Cut cut;
};

std::vector<Scheme> Schemes() {
  const std::vector<Mesh::Dim> square = {{"dp", 2}, {"tp", 2}};
  const auto fsdp_over_tp = {Placement::StridedShard(0, 2), Placement::Shard(0)};
  const Cut rows_over_tp = [square](const Shape& shape, int process) {
    return By(square, {Placement::Shard(0), Placement::Shard(shape.rank() - 1)})(shape, process);
  };
  const Cut experts = [](const Shape& shape, int process) {
    const bool stacked = shape.rank() == 3 && shape.dims()[0] == FiveExperts().experts;
    return By({{"ep", 4}}, {stacked ? Placement::Shard(0) : Placement::Replicate()})(shape,
                                                                                     process);
  };
  std::vector<Scheme> schemes = {{"Experts_fused", 4, FiveExperts(), "hf-fused", experts},
                                 {"Experts_tunix", 4, FiveExperts(), "tunix", experts}};
  for (const std::string layout : {"hf", "tunix"}) {
    for (Scheme& scheme : std::vector<Scheme>{
             {"Fsdp", 4, Uneven(), layout, By({{"dp", 4}}, {Placement::Shard(0)})},
             {"Hsdp", 4, Uneven(), layout,
              By({{"replica", 2}, {"dp", 2}}, {Placement::Replicate(), Placement::Shard(0)})},
             {"FsdpOverColumnTp", 4, Uneven(), layout, By(square, fsdp_over_tp)},
             {"FsdpOverColumnTpOfSeven", 6, Sevens(), layout,
              By({{"dp", 3}, {"tp", 2}}, fsdp_over_tp)},
             {"FsdpOverRowTp", 4, Uneven(), layout, rows_over_tp},
             {"NormsOnMeshesOfTheirOwn", 4, Uneven(), layout, NormsOnMeshesOfTheirOwn(2)},
             {"NormsOnMeshesOfTheirOwnOfSeven", 6, Sevens(), layout, NormsOnMeshesOfTheirOwn(3)},
             {"NormsElsewhere", 4, Uneven(), layout, NormsElsewhere}}) {
      scheme.name += "_" + layout;
      schemes.push_back(std::move(scheme));
    }
  }
  return schemes;
}

using SchemeAndOver = std::tuple<Scheme, RankProcesses::Over>;
class ShardedProcessesSchemeTest : public ::testing::TestWithParam<SchemeAndOver> {};
INSTANTIATE_TEST_SUITE_P(All, ShardedProcessesSchemeTest,
                         ::testing::Combine(::testing::ValuesIn(Schemes()),
                                            ::testing::Values(RankProcesses::Over::kHost,
                                                              RankProcesses::Over::kTcp)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  testing::OverName(std::get<1>(info.param));
                         });

TEST_P(ShardedProcessesSchemeTest, ShardsBecomeWhatTheWholeArraysBecome) {
  const auto& [scheme, over] = GetParam();
  const Trainer trainer(scheme.model, scheme.layout, {128, 64}, scheme.cut);
  RankProcesses ranks(scheme.processes, over, [&](Communicator& communicator, Side& side) {
    Rank rank(trainer, communicator);
    for (Version version = 1; version <= 3; ++version) side.Say(rank.Sync(version).ToString());
  });
  for (int r = 0; r < ranks.size(); ++r) {
    for (int version = 1; version <= 3; ++version) EXPECT_EQ(ranks[r].Hear(), "OK") << r;
  }
  ranks.ExpectCleanEnd();
}

class ShardedProcessesTest : public ::testing::TestWithParam<RankProcesses::Over> {
 protected:
  const Trainer trainer_{
      Sevens(),
      "tunix",
      {128, 64},
      By({{"dp", 2}, {"tp", 2}}, {Placement::StridedShard(0, 2), Placement::Shard(0)})};
};
INSTANTIATE_TEST_SUITE_P(All, ShardedProcessesTest,
                         ::testing::Values(RankProcesses::Over::kHost, RankProcesses::Over::kTcp),
                         [](const auto& info) { return testing::OverName(info.param); });

// What the tests above would not see, they could not prove.
TEST_P(ShardedProcessesTest, AByteThatOneProcessHoldsOtherwiseIsSeen) {
  RankProcesses ranks(4, GetParam(), [&](Communicator& communicator, Side& side) {
    Rank rank(trainer_, communicator);
    if (communicator.rank() == 3) rank.storage().back().back() ^= std::byte{1};
    side.Say(rank.Sync(1).ToString());
  });
  EXPECT_THAT(ranks[0].Hear(), AllOf(StartsWith("DATA_LOSS"), HasSubstr("differs")));
  for (int r = 1; r < ranks.size(); ++r) EXPECT_EQ(ranks[r].Hear(), "OK");
  ranks.ExpectCleanEnd();
}

// Each process's part of a bucket is large enough for several threads.
TEST_P(ShardedProcessesTest, SeveralThreadsOfEachProcessCopyTogether) {
  ModelSpec model = testing::TinyModel("Llama");
  model.layers = 1;
  model.hidden = 512;
  model.mlp = 1024;
  const Trainer trainer(model, "tunix", {8 << 20, 64}, By({{"dp", 2}}, {Placement::Shard(0)}));
  RankProcesses ranks(2, GetParam(), [&](Communicator& communicator, Side& side) {
    CopyOptions options;
    options.threads = 2 + communicator.rank();  // each may choose its own
    Rank rank(trainer, communicator, options);
    for (Version version = 1; version <= 3; ++version) side.Say(rank.Sync(version).ToString());
  });
  for (int r = 0; r < ranks.size(); ++r) {
    for (int version = 1; version <= 3; ++version) EXPECT_EQ(ranks[r].Hear(), "OK") << r;
  }
  ranks.ExpectCleanEnd();
}

TEST_P(ShardedProcessesTest, AProcessThatIsKilledInTheMiddleIsNamedOnAllOthersAtOnce) {
  for (const int victim : {1, 3}) {
    SCOPED_TRACE(victim);
    RankProcesses ranks(4, GetParam(), [&](Communicator& communicator, Side& side) {
      Rank rank(trainer_, communicator);
      EXPECT_EQ(rank.Sync(1), absl::OkStatus());
      if (communicator.rank() == victim) {
        rank.SyncOf(2, {0, 1},
                    [&] {
                      side.Say("in the middle");
                      side.WaitForRelease();
                    })
            .IgnoreError();
        return;
      }
      for (const Version version : {2, 3}) side.Say(rank.Sync(version).ToString());
      side.WaitForRelease();
    });
    ASSERT_EQ(ranks[victim].Hear(), "in the middle");
    const absl::Time killed = absl::Now();
    ranks[victim].Kill();
    for (int other = 0; other < ranks.size(); ++other) {
      if (other == victim) continue;
      for (int twice = 0; twice < 2; ++twice) {
        EXPECT_THAT(ranks[other].Hear(),
                    AllOf(StartsWith("UNAVAILABLE"), HasSubstr(absl::StrCat("rank ", victim))));
      }
    }
    EXPECT_LT(absl::Now() - killed, kAtOnce);
    ranks.ExpectCleanEnd(victim);
  }
}

TEST_P(ShardedProcessesTest, WhatIsAgreedOnceIsNotAskedAgain) {
  const Trainer odd(Sevens(), "tunix", {128, 64}, NormsOnMeshesOfTheirOwn(2));
  for (const Trainer* trainer : {&trainer_, &odd}) {
    RankProcesses ranks(4, GetParam(), [&](Communicator& communicator, Side& side) {
      CountingCommunicator counting(&communicator);
      Rank rank(*trainer, counting);
      for (Version version = 1; version <= 5; ++version) {
        if (version == 4 && communicator.rank() == 3) rank.Compile();
        EXPECT_EQ(rank.Sync(version), absl::OkStatus());
        side.Say(absl::StrCat(counting.TakeCalls()));
      }
    });
    for (int r = 0; r < ranks.size(); ++r) {
      int calls[5];
      for (int& count : calls) ASSERT_TRUE(absl::SimpleAtoi(ranks[r].Hear(), &count));
      static const int ordinary = calls[0];  // of a trainer whose processes all say the same
      EXPECT_EQ(calls[1], ordinary);
      EXPECT_EQ(calls[2], ordinary);
      EXPECT_EQ(calls[4], ordinary);
      for (const int first : {calls[0], calls[3]}) {  // of each program
        if (trainer == &odd) {
          EXPECT_GT(first, ordinary);
        } else {
          EXPECT_EQ(first, ordinary);
        }
      }
    }
    ranks.ExpectCleanEnd();
  }
}

// On process 0's own mesh all must say the same.
TEST_P(ShardedProcessesTest, AProcessThatShardsOtherwiseIsNamedOnAllWithTheParameter) {
  const Trainer trainer(Sevens(), "tunix", {128, 64}, [](const Shape& shape, int process) {
    const bool other = shape.rank() == 1 && process == 2;
    return By({{"dp", 4}}, {other ? Placement::Replicate() : Placement::Shard(0)})(shape, process);
  });
  RankProcesses ranks(4, GetParam(), [&](Communicator& communicator, Side& side) {
    Rank rank(trainer, communicator);
    for (const Version version : {1, 2}) side.Say(rank.Sync(version).ToString());
  });
  for (int r = 0; r < ranks.size(); ++r) {
    for (int twice = 0; twice < 2; ++twice) {
      EXPECT_THAT(ranks[r].Hear(),
                  AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("sharded otherwise"),
                        HasSubstr("final_norm"), HasSubstr("by process 2")));
    }
  }
  ranks.ExpectCleanEnd();
}

TEST_P(ShardedProcessesTest, AProcessThatFillsInAnotherOrderIsNamedOnAllAndTheNextSyncWorks) {
  RankProcesses ranks(4, GetParam(), [&](Communicator& communicator, Side& side) {
    Rank rank(trainer_, communicator);
    side.Say((communicator.rank() == 2 ? rank.SyncOf(1, {1, 0}) : rank.Sync(1)).ToString());
    side.Say(rank.Sync(2).ToString());
  });
  for (int r = 0; r < ranks.size(); ++r) {
    EXPECT_THAT(ranks[r].Hear(), AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("rank 2"),
                                       HasSubstr("Gather(tag 1)"), HasSubstr("Gather(tag 0)")));
    EXPECT_EQ(ranks[r].Hear(), "OK");
  }
  ranks.ExpectCleanEnd();
}

}  // namespace
}  // namespace weight_sync::refit
