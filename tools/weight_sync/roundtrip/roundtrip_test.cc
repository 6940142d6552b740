// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the command itself.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::roundtrip {
namespace {

using ::nlohmann::json;
using refit::testing::Elements;
using refit::testing::HfTensors;
using refit::testing::ModelSpec;
using refit::testing::TinyModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tools::NewFolder;
using tools::RunCommand;
using tools::RunForJson;

std::string FolderOf(const ModelSpec& model) {
  std::string folder = NewFolder();
  tools::WriteModel(model, HfTensors(model), folder);
  return folder;
}

TEST(RoundtripTest, EveryFamilyComesBackFromEveryLayoutItHas) {
  const std::vector<std::string> maxtext = {"maxtext", "maxtext:scanned", "maxtext:scanned,axis=0"};
  const std::set<std::string> with_maxtext = {"Qwen3TiedHeadOnDisk", "Qwen2Tied", "Moe"};
  for (const char* name : {"Qwen3TiedHeadOnDisk", "Qwen2Tied", "Llama", "Moe", "NextMtp",
                           "GemmaPleMultimodal", "GemmaMoeSharedKvOnDisk"}) {
    const ModelSpec model = TinyModel(name);
    std::vector<std::string> layouts = {"hf", "hf-fused"};
    if (!model.is_next()) layouts.push_back("tunix");
    if (model.is_next() || with_maxtext.count(name) > 0) {
      layouts.insert(layouts.end(), maxtext.begin(), maxtext.end());
    }
    const std::string folder = FolderOf(model), scratch = NewFolder();
    for (const std::string& layout : layouts) {
      for (const char* masters : {"", " --master-dtype float32"}) {
        SCOPED_TRACE(absl::StrCat(name, " ", layout, masters));
        const json report = RunForJson(0, absl::StrCat("roundtrip ", folder, " --layout ", layout,
                                                       masters, " --scratch ", scratch));
        EXPECT_EQ(report["ok"], true);
        EXPECT_EQ(report["differ"], json::array());
        EXPECT_EQ(report["tensors"], model.tensors);
        EXPECT_EQ(report["bytes"], 2 * model.elements);
        EXPECT_EQ(report["float32_masters"], *masters != '\0');
        EXPECT_GT(report["trainer_bytes"], *masters != '\0' ? 2 * model.elements : 0);
      }
    }
    EXPECT_THAT(tools::NamesIn(scratch), IsEmpty());
  }
}

TEST(RoundtripTest, RanksThatHoldShardsGiveTheSame) {
  for (const char* name : {"Moe", "NextMtp", "GemmaPleMultimodal"}) {
    const ModelSpec model = TinyModel(name);
    const std::string folder = FolderOf(model);
    const json report = RunForJson(
        0, absl::StrCat("roundtrip ", folder, " --layout hf-fused --shards dp=2,tp=2 --scratch ",
                        NewFolder()));
    EXPECT_EQ(report["shards"], "dp=2,tp=2");
    EXPECT_EQ(report["differ"], json::array());
    EXPECT_EQ(report["bytes"], 2 * model.elements);
  }
}

// The members are a promise: programs read them.
TEST(RoundtripTest, JsonHasTheDocumentedForm) {
  const ModelSpec model = TinyModel("Qwen3Tied");
  const std::string folder = FolderOf(model), scratch = NewFolder();
  json report = RunForJson(0, absl::StrCat("roundtrip ", folder, " --layout maxtext:scanned",
                                           " --master-dtype float32 --scratch ", scratch));
  EXPECT_GT(report["load_seconds"], 0);
  EXPECT_GT(report["refit_seconds"], 0);
  report["load_seconds"] = report["refit_seconds"] = 0;
  EXPECT_EQ(report, (json{{"format", 1},
                          {"ok", true},
                          {"checkpoint", folder},
                          {"layout", "maxtext:scanned,axis=1,period=1"},
                          {"float32_masters", true},
                          {"tensors", model.tensors},
                          {"bytes", 2 * model.elements},
                          {"passed_through", 0},
                          {"trainer_tensors", 13},
                          {"trainer_bytes", 4 * model.elements},
                          {"load_seconds", 0},
                          {"refit_seconds", 0},
                          {"shards", ""},
                          {"scratch", scratch},
                          {"scratch_in_memory", false},
                          {"differ", json::array()}}));
}

TEST(RoundtripTest, SaysWhatPassesThrough) {
  const std::string folder = FolderOf(TinyModel("NextMtp"));
  EXPECT_EQ(
      RunForJson(0, absl::StrCat("roundtrip ", folder, " --layout maxtext"))["passed_through"], 26);
  EXPECT_THAT(RunCommand(absl::StrCat("roundtrip ", folder, " --layout maxtext")).output,
              AllOf(HasSubstr("26 of them pass through"), HasSubstr("every byte came back"),
                    HasSubstr(" GB/s")));
}

TEST(RoundtripTest, AHeadThatIsNotItsEmbeddingIsFound) {
  const ModelSpec model = TinyModel("Qwen3TiedHeadOnDisk");
  std::vector<Elements> tensors = HfTensors(model);
  for (Elements& tensor : tensors) {
    if (tensor.name == "lm_head.weight") tensor.ids[5] += 1;
  }
  const std::string folder = NewFolder(), scratch = NewFolder();
  tools::WriteModel(model, tensors, folder);
  const json report =
      RunForJson(1, absl::StrCat("roundtrip ", folder, " --layout tunix --scratch ", scratch));
  EXPECT_EQ(report["ok"], false);
  EXPECT_THAT(report["error"].get<std::string>(),
              HasSubstr("'lm_head.weight' of the checkpoint differs from"));
  EXPECT_THAT(tools::NamesIn(scratch), IsEmpty());
}

TEST(RoundtripTest, SaysWhyItCannot) {
  const std::string folder = FolderOf(TinyModel("Llama"));
  const auto error = [&](const std::string& arguments) {
    return RunForJson(1, absl::StrCat("roundtrip ", folder, " ", arguments)).value("error", "");
  };
  EXPECT_THAT(error("--layout maxtext"), HasSubstr("head_dim^-0.5"));
  EXPECT_THAT(error("--layout tunix --scratch /nowhere"), HasSubstr("/nowhere"));
  EXPECT_THAT(error("--layout tunix:scanned"), HasSubstr("has no scanned form"));
}

TEST(RoundtripTest, MemoryThatStandsForADiskIsMentioned) {
  const std::string folder = FolderOf(TinyModel("Llama"));
  const std::string arguments =
      absl::StrCat("roundtrip ", folder, " --layout tunix --scratch /dev/shm");
  EXPECT_EQ(RunForJson(0, arguments)["scratch_in_memory"], true);
  EXPECT_THAT(RunCommand(arguments).output, HasSubstr("memory and no disk"));
  const std::string scratch = NewFolder();
  EXPECT_EQ(RunForJson(0, absl::StrCat("roundtrip ", folder, " --layout tunix"),
                       absl::StrCat("export TMPDIR=", scratch))["scratch"],
            scratch);
}

TEST(RoundtripTest, WrongUsageHasAStatusOfItsOwn) {
  EXPECT_EQ(RunCommand("roundtrip /nowhere").exit_code, 2);
  const base::ProgramResult unknown = RunCommand("roundtrip /nowhere --layout megatron");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("there are hf, hf-fused, tunix, maxtext"));
  EXPECT_EQ(RunCommand("roundtrip /nowhere --layout hf --master-dtype float16").exit_code, 2);
}

}  // namespace
}  // namespace weight_sync::roundtrip
