// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the command itself.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::inspect {
namespace {

using ::nlohmann::json;
using refit::testing::HfTensors;
using refit::testing::ModelSpec;
using refit::testing::TinyModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using tools::NewFolder;
using tools::RunCommand;
using tools::RunForJson;

std::string FolderOf(const std::string& model) {
  std::string folder = NewFolder();
  tools::WriteModel(TinyModel(model), HfTensors(TinyModel(model)), folder);
  return folder;
}

TEST(InspectTest, TellsEveryFamily) {
  std::set<std::string> families;
  for (const char* name :
       {"Qwen3Tied", "Qwen2Tied", "Llama", "Moe", "NextMtp", "GemmaPleMultimodal", "GemmaMoe"}) {
    SCOPED_TRACE(name);
    const ModelSpec model = TinyModel(name);
    const json report = RunForJson(0, "inspect " + FolderOf(name));
    EXPECT_EQ(report["ok"], true);
    EXPECT_EQ(report["model_type"], model.model_type);
    EXPECT_EQ(report["tensors"], model.tensors);
    families.insert(report["family"].get<std::string>());
  }
  EXPECT_EQ(families, (std::set<std::string>{"dense", "gemma4", "qwen3_moe", "qwen3_next"}));
}

TEST(InspectTest, ShowsALayout) {
  const std::string folder = FolderOf("NextTwoBlocks");
  const json report = RunForJson(0, absl::StrCat("inspect ", folder, " --layout maxtext:scanned"));
  EXPECT_EQ(report["details"]["layout"], "maxtext:scanned,axis=1,period=4");
  EXPECT_THAT(RunCommand(absl::StrCat("inspect ", folder, " --layout maxtext")).output,
              AllOf(HasSubstr("Layout maxtext\n"), HasSubstr("{e} h m")));
}

TEST(InspectTest, ARefusedLayoutIsAFinding) {
  const std::string folder = FolderOf("Llama");
  const json report = RunForJson(1, absl::StrCat("inspect ", folder, " --layout maxtext"));
  EXPECT_EQ(report["ok"], false);
  EXPECT_THAT(report["details"]["error"].get<std::string>(), HasSubstr("head_dim^-0.5"));
  EXPECT_EQ(RunForJson(0, "inspect " + folder)["ok"], true);
}

TEST(InspectTest, SomethingUnmatchedIsAFinding) {
  const std::string folder = NewFolder();
  std::vector<refit::testing::Elements> tensors = HfTensors(TinyModel("Qwen3Tied"));
  tensors[3].name = "model.other.weight";
  tools::WriteModel(TinyModel("Qwen3Tied"), tensors, folder);
  const json report = RunForJson(1, "inspect " + folder);
  EXPECT_EQ(report["unmatched"]["unknown"], json({"model.other.weight"}));
  EXPECT_EQ(report["unmatched"]["missing"].size(), 1u);
  const base::ProgramResult text = RunCommand("inspect " + folder);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, HasSubstr("                model.other.weight\n"));
}

TEST(InspectTest, SaysWhatIsMissing) {
  const auto error = [](const std::string& arguments) {
    const json report = RunForJson(1, "inspect " + arguments);
    EXPECT_EQ(report["format"], 1);
    EXPECT_EQ(report["ok"], false);
    return report.value("error", "");
  };
  const std::string folder = FolderOf("Qwen3Tied"), empty = NewFolder();
  EXPECT_THAT(error("/nowhere/model"), HasSubstr("there is no '/nowhere/model'"));
  EXPECT_THAT(error(empty), AllOf(HasSubstr("has no config.json"), HasSubstr("--config")));
  EXPECT_THAT(error(absl::StrCat(empty, " --config ", folder, "/config.json")),
              HasSubstr("no *.safetensors file"));
  std::ofstream(empty + "/config.json") << R"({"model_type": "mamba", "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8})";
  EXPECT_THAT(error(empty), AllOf(HasSubstr("model type 'mamba'"), HasSubstr("qwen3_moe")));
  const base::ProgramResult text = RunCommand("inspect /nowhere/model");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.output, "weight_sync: there is no '/nowhere/model'\n");
}

TEST(InspectTest, TakesAFileAndAConfigOfAnotherPlace) {
  const std::string folder = FolderOf("Qwen3Tied"), alone = NewFolder();
  EXPECT_EQ(RunForJson(0, absl::StrCat("inspect ", folder, "/model.safetensors"))["files"], 1);
  std::filesystem::copy(folder + "/model.safetensors", alone + "/other.safetensors");
  EXPECT_EQ(RunForJson(0, absl::StrCat("inspect ", alone, " --config ", folder))["files"], 1);
}

TEST(InspectTest, PathsAreRelativeToWhereTheCallerStands) {
  const std::filesystem::path folder = FolderOf("Qwen3Tied");
  RunForJson(0, "inspect " + folder.filename().string(),
             "export BUILD_WORKING_DIRECTORY=" + folder.parent_path().string());
}

TEST(InspectTest, WrongUsageHasAStatusOfItsOwn) {
  EXPECT_EQ(RunCommand("inspect").exit_code, 2);
  const base::ProgramResult unknown = RunCommand("inspect /nowhere --layout megatron");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("there are hf, hf-fused, tunix, maxtext"));
  EXPECT_EQ(RunCommand("inspect --help").exit_code, 0);
}

}  // namespace
}  // namespace weight_sync::inspect
