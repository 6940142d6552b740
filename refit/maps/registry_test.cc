// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/maps/registry.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/maps/all_families.h"
#include "refit/maps/load_checkpoint.h"
#include "refit/maps/map_source.h"
#include "refit/maps/model_config.h"
#include "refit/maps/weight_map.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A family as a user would write one: an embedding, and in each layer one square weight that the
// trainer holds transposed.
const Family& MyFamily() {
  static const Family* const family = [] {
    auto* made = new Family;
    made->name = "mine";
    made->model_types = {"my_model", "my_other_model"};
    made->layouts = {"hf", "trainer"};
    made->sizes = [](const ModelConfig& config, int64_t) -> AxisSizes {
      return {{"v", config.vocab_size}, {"h", config.hidden_size}, {"f", config.intermediate_size}};
    };
    const auto always = [](const ModelConfig&, const CheckpointForm&, int64_t) { return true; };
    made->groups = {
        {always, /*each_layer=*/false, {{{"model.embed.weight", "v h"}, {"embed", "v h"}}}},
        {always, /*each_layer=*/true, {{{"model.layers.{i}.weight", "f h"}, {"w_{i}", "h f"}}}},
    };
    made->tied_head = "";
    return made;
  }();
  return *family;
}

constexpr char kMyConfig[] =
    R"({"model_type": "my_model", "hidden_size": 2, "num_hidden_layers": 2, "num_attention_heads": 1,
        "intermediate_size": 3, "vocab_size": 2, "dtype": "float32"})";

TEST(RegistryTest, UsersOwnFamilyWorksEndToEnd) {
  FamilyRegistry registry = AllFamilies();
  ASSERT_THAT(registry.Add(&MyFamily()), IsOk());
  const auto config = ParseModelConfig(kMyConfig);
  ASSERT_THAT(config, IsOk());
  const auto family = registry.Find(config->model_type);
  ASSERT_THAT(family, IsOk());
  const auto map = WeightMap::Build(**family, *config, {"trainer"});
  ASSERT_THAT(map, IsOk());

  const std::vector<float> embed = {1, 2, 3, 4}, first = {10, 11, 12, 13, 14, 15},
                           second = {20, 21, 22, 23, 24, 25};
  const auto view = [](const std::vector<float>& values, const Shape& shape) {
    return TensorView::Contiguous(reinterpret_cast<const std::byte*>(values.data()), DType::kF32,
                                  shape);
  };
  const std::string path = ::testing::TempDir() + "/mine.safetensors";
  ASSERT_THAT(WriteSafetensors(path, {{"model.embed.weight", view(embed, {2, 2})},
                                      {"model.layers.0.weight", view(first, {3, 2})},
                                      {"model.layers.1.weight", view(second, {3, 2})}}),
              IsOk());
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_THAT(checkpoint, IsOk());

  std::vector<float> my_embed(4), w_0(6), w_1(6);
  const auto writable = [](std::vector<float>& values, const Shape& shape) {
    return MutableTensorView::Contiguous(reinterpret_cast<std::byte*>(values.data()), DType::kF32,
                                         shape);
  };
  ASSERT_THAT(LoadCheckpoint(*map, *checkpoint,
                             {{"embed", writable(my_embed, {2, 2})},
                              {"w_0", writable(w_0, {2, 3})},
                              {"w_1", writable(w_1, {2, 3})}}),
              IsOk());
  EXPECT_THAT(my_embed, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(w_0, ElementsAre(10, 12, 14, 11, 13, 15));
  EXPECT_THAT(w_1, ElementsAre(20, 22, 24, 21, 23, 25));

  StepGate gate;
  const auto source = MapSource::Create(
      *map,
      {{"embed", view(my_embed, {2, 2})}, {"w_0", view(w_0, {2, 3})}, {"w_1", view(w_1, {2, 3})}},
      nullptr, &gate);
  ASSERT_THAT(source, IsOk());
  const std::vector<Bucket> buckets = {{{{2, Box::Whole({3, 2}), 0, 24}}, 24}};
  const auto program = (*source)->Compile(buckets);
  ASSERT_THAT(program, IsOk());
  std::vector<float> slot(6);
  Stream stream = Stream::Host();
  ASSERT_THAT(
      (*program)->Fill(0, {reinterpret_cast<std::byte*>(slot.data()), 24, Device::Host()}, stream),
      IsOk());
  EXPECT_EQ(slot, second);
}

TEST(RegistryTest, HasEveryModelTypeOfTheLibrary) {
  const FamilyRegistry registry = AllFamilies();
  const auto name = [&](const char* type) { return (*registry.Find(type))->name; };
  EXPECT_EQ(name("llama"), "dense");
  EXPECT_EQ(name("qwen2"), "dense");
  EXPECT_EQ(name("qwen3"), "dense");
  EXPECT_EQ(name("qwen3_moe"), "qwen3_moe");
  EXPECT_EQ(name("qwen3_next"), "qwen3_next");
  EXPECT_EQ(name("gemma4_text"), "gemma4");
}

TEST(RegistryTest, ListsItsFamiliesOnceEach) {
  std::vector<std::string> names;
  for (const Family* family : AllFamilies().Families()) names.push_back(family->name);
  EXPECT_THAT(names, ElementsAre("dense", "gemma4", "qwen3_moe", "qwen3_next"));
}

TEST(RegistryTest, UnknownModelTypeListsWhatExists) {
  EXPECT_THAT(
      AllFamilies().Find("mamba").status(),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("'mamba'"),
                     HasSubstr("gemma4_text, llama, qwen2, qwen3, qwen3_moe, qwen3_next"))));
  EXPECT_THAT(FamilyRegistry().Find("llama").status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST(RegistryTest, FamiliesThatCannotBeFoundOrAreThereAlreadyAreRefused) {
  FamilyRegistry registry;
  Family none = MyFamily(), trainer_first = MyFamily(), no_layout = MyFamily();
  none.model_types.clear();
  trainer_first.layouts = {"trainer", "hf"};
  no_layout.layouts.clear();
  for (const Family* family : {&none, &trainer_first, &no_layout}) {
    EXPECT_THAT(registry.Add(family),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'mine'")));
  }
  Family other = MyFamily();
  other.name = "other";
  other.model_types = {"new", "my_other_model"};
  ASSERT_THAT(registry.Add(&MyFamily()), IsOk());
  EXPECT_THAT(registry.Add(&other), StatusIs(absl::StatusCode::kInvalidArgument,
                                             AllOf(HasSubstr("'my_other_model'"),
                                                   HasSubstr("'other'"), HasSubstr("'mine'"))));
  // What was refused has left nothing behind.
  EXPECT_THAT(registry.Find("new").status(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace weight_sync::refit
