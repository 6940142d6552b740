// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/map_source.h"

#include <algorithm>
#include <cstddef>
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
#include "refit/maps/tree_check.h"
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

}  // namespace
}  // namespace weight_sync::refit
