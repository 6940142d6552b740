// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/load_checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/maps/tree_check.h"
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

constexpr std::byte kPoison{0xa5};

// A checkpoint, the map that was built for it, and arrays that wait to be filled.
class LoadCheckpointTest : public ::testing::Test {
 protected:
  void Make(const std::string& model, const std::string& layout, Storage stored = Storage::kBF16) {
    model_ = TinyModel(model);
    bytes_.clear();
    arrays_.clear();
    case_ = testing::PlainCase(model_, layout);
    auto written = CheckedModel::Write(model_, case_, stored);
    ASSERT_THAT(written, IsOk());
    written_.emplace(*std::move(written));
    auto map = written_->Build(testing::FamilyOf(model_));
    ASSERT_THAT(map, IsOk());
    map_.emplace(*std::move(map));
    const DType dtype = stored == Storage::kBF16 ? DType::kBF16 : DType::kF32;
    for (const Elements& tensor : case_.tree) {
      const Shape shape = *Shape::Create(tensor.shape);
      // Twice what is needed, for views with other strides.
      bytes_.push_back(std::make_unique<std::vector<std::byte>>(8 * shape.num_elements(), kPoison));
      arrays_.push_back(
          {tensor.name, MutableTensorView::Contiguous(bytes_.back()->data(), dtype, shape)});
    }
  }

  // Changes the checkpoint after the map was built for the right one.
  void WriteOther(const std::function<void(std::vector<Elements>&)>& change) {
    LayoutCase other = case_;
    other.manifest = false;
    change(other.hf);
    auto written = CheckedModel::Write(model_, other, Storage::kBF16);
    ASSERT_THAT(written, IsOk());
    written_.emplace(*std::move(written));
  }

  absl::Status Load() const { return LoadCheckpoint(*map_, written_->checkpoint(), arrays_); }

  void ExpectRefused(const std::string& what, const std::string& name) const {
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr(what), HasSubstr(name))));
    for (const auto& bytes : bytes_) {
      EXPECT_EQ(*bytes, std::vector<std::byte>(bytes->size(), kPoison)) << "something was written";
    }
  }

  MutableTrainerArray& Array(const std::string& name) {
    return *std::find_if(arrays_.begin(), arrays_.end(),
                         [&](const auto& array) { return array.name == name; });
  }
  static Elements& Tensor(std::vector<Elements>& tensors, const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const Elements& tensor) { return tensor.name == name; });
  }

  testing::ModelSpec model_;
  LayoutCase case_;
  std::optional<CheckedModel> written_;
  std::optional<WeightMap> map_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<MutableTrainerArray> arrays_;
};

TEST_F(LoadCheckpointTest, TellsOfEachArrayThatIsDone) {
  Make("Moe", "tunix");
  int64_t calls = 0, bytes = 0;
  ASSERT_THAT(LoadCheckpoint(*map_, written_->checkpoint(), arrays_,
                             [&](int64_t loaded) {
                               ++calls;
                               bytes += loaded;
                             }),
              IsOk());
  EXPECT_EQ(calls, static_cast<int64_t>(arrays_.size()));
  EXPECT_EQ(bytes, map_->hf().total_bytes());
}

TEST_F(LoadCheckpointTest, AMissingExpert) {
  Make("Moe", "tunix");
  WriteOther([](std::vector<Elements>& hf) {
    hf.erase(std::find_if(hf.begin(), hf.end(), [](const Elements& tensor) {
      return tensor.name == "model.layers.1.mlp.experts.2.up_proj.weight";
    }));
  });
  ExpectRefused("1 missing", "model.layers.1.mlp.experts.2.up_proj.weight");
}

TEST_F(LoadCheckpointTest, SwappedAxes) {
  Make("Moe", "tunix");
  WriteOther([](std::vector<Elements>& hf) {
    std::swap(Tensor(hf, "model.layers.0.mlp.gate.weight").shape[0],
              Tensor(hf, "model.layers.0.mlp.gate.weight").shape[1]);
  });
  ExpectRefused("1 of another shape", "'model.layers.0.mlp.gate.weight' [8, 3] for [3, 8]");
}

TEST_F(LoadCheckpointTest, ATiedHeadThatDiffersFromItsEmbedding) {
  Make("Qwen3TiedHeadOnDisk", "tunix");
  EXPECT_THAT(Load(), IsOk());
  Make("Qwen3TiedHeadOnDisk", "tunix");
  WriteOther([](std::vector<Elements>& hf) { ++Tensor(hf, "lm_head.weight").ids[33]; });
  ExpectRefused("'lm_head.weight' of the checkpoint differs", "'model.embed_tokens.weight'");
}

// The map does not write the head, and the checkpoint has one.
TEST_F(LoadCheckpointTest, ATiedHeadThatTheMapDoesNotSendIsComparedToo) {
  Make("Qwen3Tied", "tunix");
  const auto add_head = [](uint32_t plus) {
    return [plus](std::vector<Elements>& hf) {
      Elements head = hf[0];
      head.name = "lm_head.weight";
      head.ids[5] += plus;
      hf.push_back(head);
    };
  };
  WriteOther(add_head(1));
  ExpectRefused("'lm_head.weight' of the checkpoint differs", "'model.embed_tokens.weight'");
  Make("Qwen3Tied", "tunix");
  WriteOther(add_head(0));
  EXPECT_THAT(Load(), IsOk());
}

TEST_F(LoadCheckpointTest, ArraysThatDoNotMatchAreNamed) {
  Make("Moe", "tunix");
  Array("layers.0.mlp.router.kernel").name = "layers.0.mlp.gate.kernel";
  ExpectRefused("1 missing", "layers.0.mlp.router.kernel");
  ExpectRefused("1 that no HF tensor is made of", "layers.0.mlp.gate.kernel");
}

TEST_F(LoadCheckpointTest, ArraysWithGaps) {
  Make("Moe", "tunix");
  MutableTensorView& view = Array("layers.0.mlp.router.kernel").view;
  view = *MutableTensorView::Strided(view.data(), view.dtype(), view.shape(), {1, 8});
  ExpectRefused("not contiguous", "'layers.0.mlp.router.kernel'");
}

TEST_F(LoadCheckpointTest, ArraysThatCannotKeepTheValues) {
  Make("Moe", "tunix");
  MutableTensorView& view = Array("layers.0.mlp.router.kernel").view;
  view = MutableTensorView::Contiguous(view.data(), DType::kF16, view.shape());
  ExpectRefused("BF16 to F16", "'layers.0.mlp.router.kernel'");
}

TEST_F(LoadCheckpointTest, ArraysThatWouldRoundTheValues) {
  Make("Moe", "tunix", Storage::kF32);
  MutableTensorView& view = Array("layers.0.mlp.router.kernel").view;
  view = MutableTensorView::Contiguous(view.data(), DType::kBF16, view.shape());
  ExpectRefused("F32 to BF16", "'layers.0.mlp.router.kernel'");
}

}  // namespace
}  // namespace weight_sync::refit
