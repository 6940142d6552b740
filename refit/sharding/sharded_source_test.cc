// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/sharding/sharded_source.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/contribute.h"
#include "refit/maps/tree_check.h"
#include "refit/maps/weight_map.h"
#include "refit/packing/packer.h"
#include "refit/sharding/communicators/thread_communicator.h"
#include "refit/tensor_digest.h"
#include "refit/testing/box_elements.h"
#include "refit/testing/elements.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "refit/testing/run_refit.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::CheckedModel;
using ::testing::Each;
using testing::Elements;
using testing::FamilyOf;
using ::testing::HasSubstr;
using testing::LayoutCase;
using testing::LayoutCases;
using testing::ModelSpec;
using testing::PlainCase;
using testing::Storage;
using testing::TinyModel;

Shape ShapeOf(const Elements& tensor) { return *Shape::Create(tensor.shape); }

DType DTypeOf(Storage storage) { return storage == Storage::kBF16 ? DType::kBF16 : DType::kF32; }

std::shared_ptr<const Mesh> MakeMesh(std::vector<Mesh::Dim> dims) {
  return std::make_shared<const Mesh>(Mesh::Create(std::move(dims)).value());
}

// Placements of any kind, on one of several meshes over 4 ranks.
Sharding RandomSharding(const Shape& shape, std::mt19937& rng) {
  static const auto* const meshes = new std::vector<std::shared_ptr<const Mesh>>{
      MakeMesh({{"dp", 4}}), MakeMesh({{"dp", 2}, {"tp", 2}}), MakeMesh({{"one", 1}}),
      std::make_shared<const Mesh>(*Mesh::Create({{"ep", 3}}, {3, 1, 2}))};
  for (;;) {
    const auto& mesh = (*meshes)[rng() % meshes->size()];
    std::vector<Placement> placements;
    for (size_t m = 0; m < mesh->dims().size(); ++m) {
      const int dim = shape.rank() == 0 ? 0 : static_cast<int>(rng() % shape.rank());
      switch (rng() % 4) {
        case 0:
          placements.push_back(Placement::Replicate());
          break;
        case 1:
          placements.push_back(Placement::StridedShard(dim, 2));
          break;
        default:
          placements.push_back(Placement::Shard(dim));
      }
    }
    auto sharding = Sharding::FromPlacements(mesh, placements, shape);
    if (sharding.ok()) return *std::move(sharding);
  }
}

// A trainer of several processes, each a thread.
class Trainer {
 public:
  Trainer(const ModelSpec& model, const LayoutCase& c, Storage arrays, int processes,
          std::vector<int> process_of_rank, std::mt19937& rng)
      : checked_(CheckedModel::Write(model, c, Storage::kBF16).value()),
        map_(checked_.Build(FamilyOf(model)).value()),
        hf_(c.hf),
        process_of_rank_(std::move(process_of_rank)),
        communicators_(MakeThreadCommunicators(processes).value()),
        gates_(static_cast<size_t>(processes)),
        shards_(static_cast<size_t>(processes)),
        sources_(static_cast<size_t>(processes)),
        programs_(static_cast<size_t>(processes)) {
    for (const Elements& tensor : c.tree) {
      const Shape shape = ShapeOf(tensor);
      const std::vector<std::byte> whole = testing::Bytes(tensor, arrays, std::byte{0});
      specs_.push_back({tensor.name, DTypeOf(arrays), RandomSharding(shape, rng)});
      const Sharding& sharding = specs_.back().sharding;
      for (const int rank : sharding.mesh().ranks()) {
        const Box box = *sharding.LocalBox(rank);
        storage_.push_back(std::make_unique<std::vector<std::byte>>(
            testing::BoxBytes(whole, shape, DTypeBits(DTypeOf(arrays)) / 8, box)));
        shards_[static_cast<size_t>(ProcessOf(rank))].push_back(
            {tensor.name,
             TensorView::Contiguous(storage_.back()->data(), DTypeOf(arrays), box.shape()), rank});
      }
    }
  }

  int processes() const { return static_cast<int>(communicators_.size()); }
  StepGate& gate(int process) { return gates_[static_cast<size_t>(process)]; }
  ShardedSource& source(int process) { return *sources_[static_cast<size_t>(process)]; }
  Program& program(int process) { return *programs_[static_cast<size_t>(process)]; }
  std::vector<ShardArray>& shards(int process) { return shards_[static_cast<size_t>(process)]; }
  std::vector<ShardedSpec>& specs() { return specs_; }
  int buckets() const { return static_cast<int>(buckets_.size()); }

  absl::StatusOr<std::unique_ptr<ShardedSource>> Create(int process) {
    return ShardedSource::Create(
        map_, specs_, process == 0 && checked_.manifest() ? &checked_.checkpoint() : nullptr,
        &gate(process), communicators_[static_cast<size_t>(process)].get(), process_of_rank_);
  }

  void Compile(const Geometry& geometry) {
    geometry_ = geometry;
    for (int p = 0; p < processes(); ++p) {
      sources_[static_cast<size_t>(p)] = Create(p).value();
      buckets_ = Pack(source(p).info(), geometry).value();
      programs_[static_cast<size_t>(p)] = source(p).Compile(buckets_).value();
    }
  }
  void Recompile(int process, const Geometry& geometry) {
    programs_[static_cast<size_t>(process)] =
        source(process).Compile(Pack(source(process).info(), geometry).value()).value();
  }
  void Bind(Version version) {
    for (int p = 0; p < processes(); ++p) {
      EXPECT_THAT(source(p).Bind(version, shards(p)), IsOk()) << p;
    }
  }

  // Runs `root` as process 0, and the others beside it.
  std::vector<absl::Status> Run(Version version,
                                const std::function<absl::Status(const base::CancelScope&)>& root,
                                absl::Duration deadline = absl::Seconds(60)) {
    std::vector<absl::Status> statuses(static_cast<size_t>(processes()));
    std::vector<std::thread> threads;
    for (int p = 0; p < processes(); ++p) {
      threads.emplace_back([&, p] {
        const base::CancelScope scope(base::Deadline::After(deadline));
        statuses[static_cast<size_t>(p)] =
            p == 0 ? root(scope) : Contribute(program(p), buckets_.size(), version, scope);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  // A whole sync, with what the engine got compared with what it must be.
  // `begun` is called in between.
  absl::Status Sync(
      Version version, bool digests, const base::CancelScope& scope,
      const std::function<void(const ReadGuard&)>& begun = [](const ReadGuard&) {}) {
    WS_ASSIGN_OR_RETURN(const ReadGuard guard, program(0).Begin(version, scope));
    begun(guard);
    const RefitInfo& info = source(0).info();
    WS_ASSIGN_OR_RETURN(const auto table,
                        testing::FillTable(info, program(0), buckets_, geometry_.bucket_bytes));
    const testing::ByName expected(hf_);
    for (int t = 0; t < info.size(); ++t) {
      const std::vector<std::byte> bytes = testing::Bytes(expected(info[t].name), Storage::kBF16);
      EXPECT_EQ(table[static_cast<size_t>(t)], bytes) << info[t].name;
      if (!digests) continue;
      WS_ASSIGN_OR_RETURN(const base::Digest128 digest, source(0).ReferenceDigest(t));
      EXPECT_EQ(digest, TensorDigest(info[t].name, TensorView::Contiguous(
                                                       bytes.data(), info[t].dtype, info[t].shape)))
          << info[t].name;
    }
    return guard.Unchanged();
  }
  std::vector<absl::Status> SyncAll(Version version, bool digests = true) {
    return Run(version,
               [&](const base::CancelScope& scope) { return Sync(version, digests, scope); });
  }

 private:
  int ProcessOf(int rank) const {
    return process_of_rank_.empty() ? rank : process_of_rank_[static_cast<size_t>(rank)];
  }

  const CheckedModel checked_;
  const WeightMap map_;
  const std::vector<Elements> hf_;
  const std::vector<int> process_of_rank_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<StepGate> gates_;
  std::vector<ShardedSpec> specs_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> storage_;
  std::vector<std::vector<ShardArray>> shards_;
  Geometry geometry_;
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<ShardedSource>> sources_;
  std::vector<std::unique_ptr<Program>> programs_;
};

class ShardedSourceFamilyTest : public ::testing::TestWithParam<ModelSpec> {};

// Every layout is cut at random; what else there is to choose takes turns.
TEST_P(ShardedSourceFamilyTest, RefitsFromShardsOfEveryLayoutHoweverTheyAreCut) {
  std::mt19937 rng(7);
  int turn = 0;
  for (const LayoutCase& c : LayoutCases(GetParam())) {
    SCOPED_TRACE(c.label);
    Trainer trainer(GetParam(), c, turn % 2 == 0 ? Storage::kBF16 : Storage::kBF16AsMaster, 4, {},
                    rng);
    trainer.Compile(turn % 3 == 0 ? Geometry{192, 64} : Geometry{4096, 8});
    trainer.Bind(1);
    ASSERT_THAT(trainer.SyncAll(1, /*digests=*/turn % 3 != 0), Each(IsOk()));
    ++turn;
  }
}

TEST_P(ShardedSourceFamilyTest, RefitsWhereAProcessDrivesSeveralDevices) {
  std::mt19937 rng(8);
  const LayoutCase c = LayoutCases(GetParam()).back();
  for (const auto& [processes, process_of_rank] :
       std::vector<std::pair<int, std::vector<int>>>{{1, {0, 0, 0, 0}}, {2, {0, 1, 1, 0}}}) {
    Trainer trainer(GetParam(), c, Storage::kBF16, processes, process_of_rank, rng);
    trainer.Compile({4096, 64});
    trainer.Bind(1);
    ASSERT_THAT(trainer.SyncAll(1), Each(IsOk())) << processes;
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, ShardedSourceFamilyTest,
                         ::testing::ValuesIn(testing::TinyModels()),
                         [](const auto& model) { return model.param.name; });

class ShardedSourceTest : public ::testing::Test {
 protected:
  void Make(int processes = 3, const std::string& layout = "tunix",
            const std::string& model = "Qwen3Tied") {
    std::mt19937 rng(9);
    const ModelSpec spec = TinyModel(model);
    trainer_ = std::make_unique<Trainer>(spec, PlainCase(spec, layout), Storage::kBF16, processes,
                                         std::vector<int>{0, 1, 2, 2}, rng);
    trainer_->Compile({192, 64});
    trainer_->Bind(1);
  }

  std::unique_ptr<Trainer> trainer_;
};

auto AllFailed(absl::StatusCode code, const std::string& text) {
  return Each(StatusIs(code, HasSubstr(text)));
}

TEST_F(ShardedSourceTest, SyncsAgainAndAgainWithoutCompilingAgain) {
  Make();
  for (Version version = 2; version < 6; ++version) {
    trainer_->Bind(version);
    ASSERT_THAT(trainer_->SyncAll(version), Each(IsOk()));
  }
}

TEST_F(ShardedSourceTest, AStepOnAnyProcessFailsTheSyncOnAll) {
  Make();
  for (int stepping = 0; stepping < 3; ++stepping) {
    const auto statuses = trainer_->Run(1, [&](const base::CancelScope& scope) -> absl::Status {
      WS_ASSIGN_OR_RETURN(const ReadGuard guard, trainer_->program(0).Begin(1, scope));
      {
        const StepGate::Step step(trainer_->gate(stepping));
      }
      std::vector<std::byte> slot(192);
      Stream stream = Stream::Host();
      for (int b = 0; b < trainer_->buckets(); ++b) {
        WS_RETURN_IF_ERROR(
            trainer_->program(0).Fill(b, {slot.data(), 192, Device::Host()}, stream).status());
      }
      return guard.Unchanged();
    });
    EXPECT_THAT(statuses, AllFailed(absl::StatusCode::kAborted, "optimizer step")) << stepping;
  }
  EXPECT_THAT(trainer_->SyncAll(1), Each(IsOk()));
}

TEST_F(ShardedSourceTest, AStepGoesOnWhereEachProcessReadsASnapshot) {
  Make();
  for (int p = 0; p < 3; ++p) ASSERT_THAT(trainer_->source(p).UseSnapshots(), IsOk());
  const auto statuses = trainer_->Run(1, [&](const base::CancelScope& scope) {
    return trainer_->Sync(1, /*digests=*/true, scope, [&](const ReadGuard& guard) {
      EXPECT_FALSE(guard.blocks_trainer());
      const StepGate::Step step(trainer_->gate(0));
      trainer_->source(0).Release();
    });
  });
  EXPECT_THAT(statuses, Each(IsOk()));
}

TEST_F(ShardedSourceTest, AProcessThatHasNothingBoundFailsTheSyncOnAll) {
  Make();
  trainer_->source(2).Release();
  EXPECT_THAT(trainer_->SyncAll(1),
              AllFailed(absl::StatusCode::kFailedPrecondition, "no arrays are bound"));
  trainer_->Bind(2);
  EXPECT_THAT(trainer_->SyncAll(2), Each(IsOk()));
}

TEST_F(ShardedSourceTest, AProcessWithArraysOfAnotherVersionFailsTheSyncOnAll) {
  Make();
  ASSERT_THAT(trainer_->source(1).Bind(2, trainer_->shards(1)), IsOk());
  EXPECT_THAT(trainer_->SyncAll(1),
              AllFailed(absl::StatusCode::kFailedPrecondition, "are of version 2"));
}

TEST_F(ShardedSourceTest, AProcessThatWasMadeForOtherBucketsIsNamedOnAll) {
  Make();
  trainer_->Recompile(1, {128, 64});
  EXPECT_THAT(trainer_->SyncAll(1), AllFailed(absl::StatusCode::kFailedPrecondition, "process 1"));
  trainer_->Recompile(1, {192, 64});
  EXPECT_THAT(trainer_->SyncAll(1), Each(IsOk()));
}

TEST_F(ShardedSourceTest, ASyncThatProcessZeroGivesUpEndsOnAllAndTheNextWorks) {
  Make();
  for (int until = 0; until < trainer_->buckets(); until += 3) {
    const auto statuses = trainer_->Run(1, [&](const base::CancelScope& scope) -> absl::Status {
      WS_ASSIGN_OR_RETURN(const ReadGuard guard, trainer_->program(0).Begin(1, scope));
      std::vector<std::byte> slot(192);
      Stream stream = Stream::Host();
      for (int b = 0; b < until; ++b) {
        WS_RETURN_IF_ERROR(
            trainer_->program(0).Fill(b, {slot.data(), 192, Device::Host()}, stream).status());
      }
      return absl::AbortedError("gave the sync up");
    });
    EXPECT_THAT(statuses, AllFailed(absl::StatusCode::kAborted, "gave the sync up")) << until;
  }
  EXPECT_THAT(trainer_->SyncAll(1), Each(IsOk()));
}

TEST_F(ShardedSourceTest, WhatIsBoundWronglyIsListed) {
  Make();
  const auto refused = [&](int process, const std::vector<ShardArray>& shards, const char* why) {
    EXPECT_THAT(trainer_->source(process).Bind(2, shards),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(why), HasSubstr("of version 2"))));
  };
  std::vector<ShardArray> shards = trainer_->shards(2);
  refused(2, {}, "missing");
  shards.push_back(shards[0]);
  refused(2, shards, "given twice");
  shards.back().name = "unknown";
  refused(2, shards, "that no HF tensor is made of: 'unknown'");
  shards.back() = trainer_->shards(0)[0];
  refused(2, shards, "of mesh ranks that this process does not hold");
  shards.pop_back();
  for (ShardArray& shard : shards) {
    if (shard.view.num_bytes() == 0) continue;
    const TensorView view = shard.view;
    shard.view = TensorView::Contiguous(view.data(), DType::kF16, view.shape());
    refused(2, shards, "of another shape or dtype");
    shard.view = TensorView::Contiguous(view.data(), view.dtype(), {1, 1, 1, 1, 1});
    refused(2, shards, "of another shape or dtype");
    shard.view = TensorView::Contiguous(nullptr, view.dtype(), view.shape());
    refused(2, shards, "without memory");
    shard.view = view;
    break;
  }
  EXPECT_THAT(trainer_->source(2).Bind(2, shards), IsOk());
}

TEST_F(ShardedSourceTest, WhatCannotBeMadeIsRefusedWithTheReason) {
  Make();
  const auto refused = [&](const char* why) {
    EXPECT_THAT(trainer_->Create(0).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  const std::vector<ShardedSpec> specs = trainer_->specs();
  trainer_->specs().pop_back();
  refused("missing");
  trainer_->specs() = specs;
  trainer_->specs()[0].dtype = DType::kF16;
  refused("F16");
  trainer_->specs() = specs;
  trainer_->specs()[1].sharding = *Sharding::FromPlacements(
      MakeMesh({{"dp", 5}}), {Placement::Replicate()}, specs[1].sharding.shape());
  refused("mesh rank 4, which is none of the 3 processes'");
}

TEST_F(ShardedSourceTest, DigestsAndFillsBelongIntoASync) {
  Make();
  EXPECT_THAT(trainer_->source(0).ReferenceDigest(0),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("inside of a sync")));
  EXPECT_THAT(trainer_->source(1).ReferenceDigest(0),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("only process 0")));
  Stream stream = Stream::Host();
  EXPECT_THAT(trainer_->program(0).Fill(0, {}, stream),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Begin() first")));
}

}  // namespace
}  // namespace weight_sync::refit
