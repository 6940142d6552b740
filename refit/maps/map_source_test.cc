// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/map_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cancel_scope.h"
#include "base/deadline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/trainer_arrays.h"
#include "refit/maps/tree_check.h"
#include "refit/packing/packer.h"
#include "refit/tensor_digest.h"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using testing::CheckedModel;
using testing::Elements;
using ::testing::HasSubstr;
using testing::LayoutCase;
using testing::Storage;
using testing::TinyModel;

class MapSourceTest : public ::testing::Test {
 protected:
  void Make(const std::string& model, const std::string& layout) {
    const testing::ModelSpec m = TinyModel(model);
    case_ = testing::PlainCase(m, layout);
    auto written = CheckedModel::Write(m, case_, Storage::kBF16);
    ASSERT_THAT(written, IsOk());
    written_.emplace(*std::move(written));
    auto map = written_->Build(testing::FamilyOf(m));
    ASSERT_THAT(map, IsOk());
    map_.emplace(*std::move(map));
    for (const Elements& tensor : case_.tree) {
      bytes_.push_back(std::make_unique<std::vector<std::byte>>(Bytes(tensor, Storage::kBF16)));
      arrays_.push_back({tensor.name, TensorView::Contiguous(bytes_.back()->data(), DType::kBF16,
                                                             *Shape::Create(tensor.shape))});
    }
  }

  absl::StatusOr<std::unique_ptr<MapSource>> Create(const Checkpoint* source = nullptr) {
    return MapSource::Create(*map_, arrays_, source, &gate_);
  }
  // What the arrays are, without where.
  std::vector<ArraySpec> Specs() const {
    std::vector<ArraySpec> specs;
    for (const TrainerArray& array : arrays_) {
      specs.push_back({array.name, array.view.dtype(), array.view.shape(), {}});
    }
    return specs;
  }
  TrainerArray& Array(const std::string& name) {
    return *std::find_if(arrays_.begin(), arrays_.end(),
                         [&](const auto& array) { return array.name == name; });
  }
  static auto Refused(const std::string& what, const std::string& name) {
    return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(what), HasSubstr(name)));
  }

  StepGate gate_;
  LayoutCase case_;
  std::optional<CheckedModel> written_;
  std::optional<WeightMap> map_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<TrainerArray> arrays_;
};

TEST_F(MapSourceTest, ReadsThePresentValuesAtEachFill) {
  Make("Qwen3Tied", "tunix");
  auto source = Create();
  ASSERT_THAT(source, IsOk());
  const int norm = *(*source)->info().Find("model.norm.weight");
  const std::vector<Bucket> buckets = {{{{norm, Box::Whole({8}), 0, 16}}, 16}};
  auto program = (*source)->Compile(buckets);
  ASSERT_THAT(program, IsOk());
  std::vector<std::byte>& held =
      *bytes_[static_cast<size_t>(&Array("final_norm.w") - arrays_.data())];
  Stream stream = Stream::Host();
  for (int step = 0; step < 3; ++step) {
    {
      StepGate::Step open(gate_);
      for (std::byte& byte : held) byte ^= std::byte{0x5a};
    }
    std::vector<std::byte> slot(16);
    ASSERT_THAT((*program)->Fill(0, {slot.data(), 16, Device::Host()}, stream), IsOk());
    EXPECT_EQ(slot, held);
    const auto digest = (*source)->ReferenceDigest(norm);
    ASSERT_THAT(digest, IsOk());
    EXPECT_EQ(*digest, TensorDigest("model.norm.weight",
                                    TensorView::Contiguous(held.data(), DType::kBF16, {8})));
  }
}

TEST_F(MapSourceTest, AStepThatOverlapsIsTold) {
  Make("Qwen3Tied", "tunix");
  auto source = Create();
  ASSERT_THAT(source, IsOk());
  auto program = (*source)->Compile({});
  ASSERT_THAT(program, IsOk());
  const base::CancelScope scope(base::Deadline::After(absl::Seconds(60)));
  const auto guard = (*program)->Begin(1, scope);
  ASSERT_THAT(guard, IsOk());
  StepGate::Step step(gate_);
  EXPECT_THAT(guard->Unchanged(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT((*program)->Begin(2, scope).status(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(MapSourceTest, WithoutAGate) {
  Make("Qwen3Tied", "tunix");
  EXPECT_THAT(MapSource::Create(*map_, arrays_, nullptr, nullptr).status(),
              Refused("StepGate", ""));
}

TEST_F(MapSourceTest, ArraysThatDoNotMatch) {
  Make("Moe", "tunix");
  arrays_.push_back({"layers.0.mlp.bias", arrays_[0].view});
  EXPECT_THAT(Create().status(), Refused("1 that no HF tensor is made of", "layers.0.mlp.bias"));
}

TEST_F(MapSourceTest, DTypesWhoseValuesCannotBeKept) {
  Make("Moe", "tunix");
  TrainerArray& router = Array("layers.0.mlp.router.kernel");
  router.view = TensorView::Contiguous(router.view.data(), DType::kF16, router.view.shape());
  EXPECT_THAT(Create().status(), AllOf(Refused("F16 to BF16", "'layers.0.mlp.router.kernel'"),
                                       Refused("", "'model.layers.0.mlp.gate.weight'")));
}

TEST_F(MapSourceTest, WhatPassesThroughNeedsItsSource) {
  Make("NextMtp", "maxtext");
  EXPECT_THAT(Create(&written_->checkpoint()), IsOk());
  EXPECT_THAT(Create().status(), Refused("26 that pass through", "mtp."));
}

TEST_F(MapSourceTest, WhatPassesThroughMustBeAsTheManifestSays) {
  Make("NextMtp", "maxtext");
  LayoutCase other = case_;
  for (Elements& tensor : other.hf) {
    if (tensor.name == "mtp.fc.weight") std::swap(tensor.shape[0], tensor.shape[1]);
    if (tensor.name == "mtp.norm.weight") tensor.name = "mtp.norm.bias";
  }
  const auto written = CheckedModel::Write(TinyModel("NextMtp"), other, Storage::kBF16);
  ASSERT_THAT(written, IsOk());
  const auto status = Create(&written->checkpoint()).status();
  EXPECT_THAT(status, Refused("2 that pass through", "mtp.fc.weight"));
  EXPECT_THAT(status, Refused("as the manifest says", "mtp.norm.weight"));
  const auto wide = CheckedModel::Write(TinyModel("NextMtp"), case_, Storage::kF32);
  ASSERT_THAT(wide, IsOk());
  EXPECT_THAT(Create(&wide->checkpoint()).status(), Refused("26 that pass through", "mtp."));
}

TEST_F(MapSourceTest, PiecesAndTensorsThatAreNotThere) {
  Make("Qwen3Tied", "tunix");
  auto source = Create();
  ASSERT_THAT(source, IsOk());
  const std::vector<Bucket> outside = {{{{0, Box::Whole({12, 8}), 0, 192}}, 192}};
  EXPECT_THAT((*source)->Compile(outside).status(),
              Refused("'model.embed_tokens.weight'", Box::Whole({12, 8}).ToString()));
  for (const int unknown : {-1, 24}) {
    EXPECT_THAT((*source)->ReferenceDigest(unknown).status(),
                Refused(absl::StrCat("no tensor ", unknown), "24"));
  }
}

// A trainer whose arrays are new objects at each step, as JAX's are.
class UnboundMapSourceTest : public MapSourceTest {
 protected:
  void MakeUnbound(const std::string& model, const std::string& layout) {
    Make(model, layout);
    auto source = MapSource::CreateUnbound(*map_, Specs(), nullptr, &gate_);
    ASSERT_THAT(source, IsOk());
    source_ = *std::move(source);
    norm_ = *source_->info().Find("model.norm.weight");
    const std::vector<Bucket> buckets = {{{{norm_, Box::Whole({8}), 0, 16}}, 16}};
    auto program = source_->Compile(buckets);
    ASSERT_THAT(program, IsOk());
    program_ = *std::move(program);
  }

  // New memory of other values for every array; the old one is gone.
  void Step() {
    ++steps_;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      auto next = std::make_unique<std::vector<std::byte>>(*bytes_[i]);
      for (std::byte& byte : *next) byte ^= std::byte{steps_};
      bytes_[i] = std::move(next);
      arrays_[i].view = TensorView::Contiguous(bytes_[i]->data(), arrays_[i].view.dtype(),
                                               arrays_[i].view.shape());
    }
  }
  absl::Status Fill() {
    Stream stream = Stream::Host();
    slot_.assign(16, std::byte{0xee});
    return program_->Fill(0, {slot_.data(), 16, Device::Host()}, stream).status();
  }
  const std::vector<std::byte>& norm() {
    return *bytes_[static_cast<size_t>(&Array("final_norm.w") - arrays_.data())];
  }
  static auto NotNow(const std::string& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what));
  }
  // That nothing is bound, and nothing is read.
  void ExpectUnbound() {
    EXPECT_THAT(program_->Begin(7, scope_).status(),
                NotNow("Bind() the trainer's arrays of version 7"));
    EXPECT_THAT(source_->ReferenceDigest(norm_).status(), NotNow("no arrays are bound"));
  }

  const base::CancelScope scope_{base::Deadline::After(absl::Seconds(60))};
  std::unique_ptr<MapSource> source_;
  std::unique_ptr<Program> program_;
  int norm_ = -1;
  uint8_t steps_ = 0;
  std::vector<std::byte> slot_;
};

TEST_F(UnboundMapSourceTest, CompilesAndWaitsForArrays) {
  MakeUnbound("Qwen3Tied", "tunix");
  ExpectUnbound();
  EXPECT_THAT(Fill(), NotNow("no arrays are bound"));
  ASSERT_THAT(source_->Bind(1, arrays_), IsOk());
  EXPECT_THAT(Fill(), StatusIs(absl::StatusCode::kAborted, HasSubstr("bound anew")));
}

TEST_F(UnboundMapSourceTest, EachVersionHasArraysOfItsOwn) {
  MakeUnbound("Qwen3Tied", "tunix");
  for (Version version = 1; version <= 3; ++version) {
    Step();
    std::vector<TrainerArray> in_any_order = arrays_;
    std::rotate(in_any_order.begin(), in_any_order.begin() + version, in_any_order.end());
    ASSERT_THAT(source_->Bind(version, in_any_order), IsOk());
    const auto guard = program_->Begin(version, scope_);
    ASSERT_THAT(guard, IsOk());
    ASSERT_THAT(Fill(), IsOk());
    EXPECT_THAT(guard->Unchanged(), IsOk());
    EXPECT_EQ(slot_, norm());
    const auto digest = source_->ReferenceDigest(norm_);
    ASSERT_THAT(digest, IsOk());
    EXPECT_EQ(*digest, TensorDigest("model.norm.weight",
                                    TensorView::Contiguous(norm().data(), DType::kBF16, {8})));
    source_->Release();
    ExpectUnbound();
  }
}

TEST_F(UnboundMapSourceTest, ArraysOfAnotherVersionAreNotSent) {
  MakeUnbound("Qwen3Tied", "tunix");
  ASSERT_THAT(source_->Bind(4, arrays_), IsOk());
  const auto status = program_->Begin(5, scope_).status();
  EXPECT_THAT(status, NotNow("the arrays bound are of version 4"));
  EXPECT_THAT(status, NotNow("version 5 first"));
  EXPECT_THAT(program_->Begin(4, scope_), IsOk());
}

TEST_F(UnboundMapSourceTest, ArraysThatMoveDuringASyncEndIt) {
  MakeUnbound("Qwen3Tied", "tunix");
  ASSERT_THAT(source_->Bind(1, arrays_), IsOk());
  ASSERT_THAT(program_->Begin(1, scope_), IsOk());
  ASSERT_THAT(Fill(), IsOk());
  ASSERT_THAT(source_->Bind(1, arrays_), IsOk());
  EXPECT_THAT(Fill(), StatusIs(absl::StatusCode::kAborted, HasSubstr("bucket 0")));
  ASSERT_THAT(program_->Begin(1, scope_), IsOk());
  ASSERT_THAT(Fill(), IsOk());
  source_->Release();
  EXPECT_THAT(Fill(), StatusIs(absl::StatusCode::kAborted, HasSubstr("released")));
}

TEST_F(UnboundMapSourceTest, ArraysThatProgramsWereNotCompiledForAreNotBound) {
  MakeUnbound("Moe", "tunix");
  const auto refused = [&](const std::string& name, const TensorView& view,
                           const std::string& what) {
    ASSERT_THAT(source_->Bind(7, arrays_), IsOk());
    const TensorView was = std::exchange(Array(name).view, view);
    const auto status = source_->Bind(8, arrays_);
    EXPECT_THAT(status, Refused(what, name));
    ExpectUnbound();
    Array(name).view = was;
  };
  const std::string router = "layers.0.mlp.router.kernel", norm = "final_norm.w";
  const std::vector<std::byte> large(1024);
  refused(router, TensorView::Contiguous(large.data(), DType::kF32, {8, 3}),
          "arrays of version 8: 1 of another shape, dtype or strides");
  refused(router, *TensorView::Strided(large.data(), DType::kBF16, {8, 3}, {1, 8}),
          "arrays of version 8: 1 of another shape, dtype or strides");
  refused(router, TensorView::Contiguous(large.data(), DType::kBF16, {3, 8}), "another shape");
  refused(norm, TensorView::Contiguous(nullptr, DType::kBF16, {0}), "another shape");
  refused(norm, TensorView::Contiguous(nullptr, DType::kBF16, {8}), "1 without memory");
  arrays_.pop_back();
  EXPECT_THAT(source_->Bind(9, arrays_), Refused("1 missing", ""));
  ExpectUnbound();
}

// Exporters give a dimension of one element any stride.
TEST_F(UnboundMapSourceTest, StridesOfOneElementDoNotMatter) {
  Make("Next", "maxtext");
  const auto is_conv = [](const TrainerArray& array) {
    return array.view.shape().rank() == 3 && array.view.shape()[1] == 1;
  };
  const auto conv = std::find_if(arrays_.begin(), arrays_.end(), is_conv);
  ASSERT_NE(conv, arrays_.end());
  std::vector<ArraySpec> specs = Specs();
  const TensorView view = conv->view;
  for (const int64_t stride : {int64_t{0}, int64_t{1}, INT64_MAX}) {
    const std::vector<int64_t> strides = {view.strides()[0], stride, view.strides()[2]};
    auto source = MapSource::CreateUnbound(*map_, specs, nullptr, &gate_);
    ASSERT_THAT(source, IsOk());
    conv->view = *TensorView::Strided(view.data(), view.dtype(), view.shape(), strides);
    EXPECT_THAT((*source)->Bind(1, arrays_), IsOk());

    specs[static_cast<size_t>(conv - arrays_.begin())].strides = strides;
    source = MapSource::CreateUnbound(*map_, specs, nullptr, &gate_);
    ASSERT_THAT(source, IsOk());
    const auto buckets = Pack((*source)->info(), {1 << 16});
    ASSERT_THAT(buckets, IsOk());
    EXPECT_THAT((*source)->Compile(*buckets), IsOk());
    EXPECT_THAT((*source)->Bind(1, arrays_), IsOk());
    for (int t = 0; t < (*source)->info().size(); ++t) {
      EXPECT_THAT((*source)->ReferenceDigest(t), IsOk());
    }
  }
}

TEST_F(UnboundMapSourceTest, ATiedHeadIsComparedWheneverItIsBound) {
  Make("Qwen3Tied", "hf");
  std::vector<ArraySpec> specs = Specs();
  specs.push_back({"lm_head.weight", DType::kBF16, {11, 8}, {}});
  auto source = MapSource::CreateUnbound(*map_, specs, nullptr, &gate_);
  ASSERT_THAT(source, IsOk());
  const TensorView embedding = Array("model.embed_tokens.weight").view;
  std::vector<std::byte> head(embedding.data(), embedding.data() + embedding.num_bytes());
  arrays_.push_back({"lm_head.weight", TensorView::Contiguous(head.data(), DType::kBF16, {11, 8})});
  EXPECT_THAT((*source)->Bind(1, arrays_), IsOk());
  head[5] ^= std::byte{1};
  EXPECT_THAT((*source)->Bind(2, arrays_),
              Refused("'lm_head.weight' differs", "'model.embed_tokens.weight'"));
  EXPECT_THAT((*source)->ReferenceDigest(0).status(), NotNow("no arrays are bound"));
}

TEST_F(UnboundMapSourceTest, ASourceOfArraysCanBeBoundAnew) {
  Make("Qwen3Tied", "tunix");
  auto source = Create();
  ASSERT_THAT(source, IsOk());
  auto program = (*source)->Compile({});
  ASSERT_THAT(program, IsOk());
  for (const Version any : {1, 5, 2}) EXPECT_THAT((*program)->Begin(any, scope_), IsOk());
  Step();
  ASSERT_THAT((*source)->Bind(6, arrays_), IsOk());
  EXPECT_THAT((*program)->Begin(6, scope_), IsOk());
  EXPECT_THAT((*program)->Begin(7, scope_).status(), NotNow("of version 6"));
}

TEST_F(UnboundMapSourceTest, WhatPassesThroughIsThereAllTheTime) {
  Make("NextMtp", "maxtext");
  std::vector<ArraySpec> specs = Specs();
  EXPECT_THAT(MapSource::CreateUnbound(*map_, specs, nullptr, &gate_).status(),
              Refused("26 that pass through", "mtp."));
  auto source = MapSource::CreateUnbound(*map_, specs, &written_->checkpoint(), &gate_);
  ASSERT_THAT(source, IsOk());
  const int passed = *(*source)->info().Find("mtp.norm.weight");
  const std::vector<Bucket> buckets = {{{{passed, Box::Whole({8}), 0, 16}}, 16}};
  auto program = (*source)->Compile(buckets);
  ASSERT_THAT(program, IsOk());
  const TensorView& held = written_->checkpoint().Find("mtp.norm.weight")->tensor;
  for (Version version = 1; version <= 2; ++version) {
    ASSERT_THAT((*source)->Bind(version, arrays_), IsOk());
    ASSERT_THAT((*program)->Begin(version, scope_), IsOk());
    std::vector<std::byte> slot(16);
    Stream stream = Stream::Host();
    ASSERT_THAT((*program)->Fill(0, {slot.data(), 16, Device::Host()}, stream), IsOk());
    EXPECT_EQ(slot, std::vector<std::byte>(held.data(), held.data() + 16));
    (*source)->Release();
  }
}

}  // namespace
}  // namespace weight_sync::refit
