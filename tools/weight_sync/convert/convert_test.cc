// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the command itself.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/testing/family_trees.h"
#include "refit/testing/model_spec.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::convert {
namespace {

using ::nlohmann::json;
using refit::testing::Elements;
using refit::testing::HfTensors;
using refit::testing::MaxTextTree;
using refit::testing::ModelSpec;
using refit::testing::Storage;
using refit::testing::TinyModel;
using refit::testing::TunixTree;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tools::NamesIn;
using tools::NewFolder;
using tools::RunCommand;
using tools::RunForJson;

namespace fs = std::filesystem;

std::string FolderOf(const ModelSpec& model) {
  std::string folder = NewFolder();
  tools::WriteModel(model, HfTensors(model), folder);
  return folder;
}

std::string Text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ConvertTest, EveryFamilyGoesIntoATrainersTreeAndBack) {
  for (const char* name : {"Qwen3Tied", "Llama", "Moe", "NextMtp", "GemmaPleMultimodal"}) {
    SCOPED_TRACE(name);
    const ModelSpec model = TinyModel(name);
    const std::string checkpoint = FolderOf(model), tree = NewFolder(), back = NewFolder();
    const std::string layout = model.is_next() ? "maxtext:scanned" : "tunix";
    const json there =
        RunForJson(0, absl::StrCat("convert ", checkpoint, " --from hf --to ", layout, " --config ",
                                   checkpoint, "/config.json --out ", tree));
    EXPECT_EQ(there["ok"], true);
    EXPECT_THAT(NamesIn(tree), ElementsAre("config.json", "model.safetensors"));
    EXPECT_EQ(Text(tree + "/config.json"), Text(checkpoint + "/config.json"));
    const json home =
        RunForJson(0, absl::StrCat("convert ", tree, " --from ", layout, " --to hf --config ", tree,
                                   " --manifest-from ", checkpoint, " --out ", back, "/new"));
    tools::ExpectTensors(back + "/new", HfTensors(model));
    EXPECT_EQ(home["passed_through"], there["left_out"].size());
    EXPECT_EQ(home["tensors"], model.tensors);
  }
}

TEST(ConvertTest, ATreeMayHavePathNamesOfItsOwn) {
  const ModelSpec model = TinyModel("Qwen3Untied");
  const std::string config = FolderOf(model);
  const auto converts = [&](const char* layout, const std::vector<Elements>& tree,
                            const std::function<std::string(const std::string&)>& rename) {
    const std::string in = NewFolder(), out = NewFolder();
    tools::WriteTensors(tree, in, Storage::kBF16, rename);
    RunForJson(0, absl::StrCat("convert ", in, " --from ", layout, " --to hf --config ", config,
                               " --out ", out));
    tools::ExpectTensors(out, HfTensors(model));
  };
  converts("tunix", TunixTree(model, HfTensors(model)),
           [](const std::string& name) { return absl::StrReplaceAll(name, {{".", "/"}}); });
  converts("tunix", TunixTree(model, HfTensors(model)), [](const std::string& name) {
    return absl::StrCat("['", absl::StrReplaceAll(name, {{".", "']['"}}), "'].value");
  });
  converts("maxtext", MaxTextTree(model, HfTensors(model), {}), [](const std::string& name) {
    return absl::StrCat("params/", absl::StrReplaceAll(name, {{"-", "/"}}));
  });
}

TEST(ConvertTest, ShardsAreNamedAsHuggingFaceDoes) {
  const ModelSpec model = TinyModel("Qwen3Tied");
  const std::string checkpoint = FolderOf(model), out = NewFolder();
  const json report =
      RunForJson(0, absl::StrCat("convert ", checkpoint, " --from hf --to hf --config ", checkpoint,
                                 " --out ", out, " --max-shard-bytes 1KB"));
  const std::vector<std::string> names = NamesIn(out);
  ASSERT_EQ(report["files"], 3);
  EXPECT_THAT(names,
              ElementsAre("config.json", "model-00001-of-00003.safetensors",
                          "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                          "model.safetensors.index.json"));
  tools::ExpectTensors(out, HfTensors(model));
  EXPECT_EQ(json::parse(Text(out + "/model.safetensors.index.json"))["metadata"]["total_size"],
            2 * model.elements);
  // What transformers looks for in a file.
  EXPECT_THAT(Text(out + "/model-00001-of-00003.safetensors"), HasSubstr(R"({"format":"pt"})"));
}

// Masters that no bfloat16 equals go from one trainer to another unrounded when they stay float32.
TEST(ConvertTest, MastersAreRoundedUnlessTheyStayMasters) {
  const ModelSpec model = TinyModel("Moe");
  const std::vector<Elements> hf = HfTensors(model);
  const std::string config = FolderOf(model), in = NewFolder();
  tools::WriteTensors(TunixTree(model, hf), in, Storage::kBF16AsMaster);
  for (const std::string& manifest : {std::string(), " --manifest-from " + config}) {
    const std::string command =
        absl::StrCat("convert ", in, " --from tunix --to maxtext --config ", config, manifest);
    std::string out = NewFolder();
    EXPECT_EQ(RunForJson(0, absl::StrCat(command, " --out ", out))["rounded"], model.tensors);
    tools::ExpectTensors(out, MaxTextTree(model, hf, {}), Storage::kBF16);
    out = NewFolder();
    EXPECT_EQ(
        RunForJson(0, absl::StrCat(command, " --out ", out, " --master-dtype float32"))["rounded"],
        0);
    tools::ExpectTensors(out, MaxTextTree(model, hf, {}), Storage::kBF16AsMaster);
  }
}

std::string Error(const std::string& arguments) {
  return RunForJson(1, "convert " + arguments).value("error", "");
}

TEST(ConvertTest, WhatNoTrainerHoldsNeedsTheCheckpointThatHasIt) {
  const ModelSpec towers = TinyModel("GemmaPleMultimodal");
  const std::string checkpoint = FolderOf(towers), tree = NewFolder(), out = NewFolder();
  tools::WriteTensors(TunixTree(towers, HfTensors(towers)), tree);
  EXPECT_THAT(
      Error(absl::StrCat(tree, " --from tunix --to hf --config ", checkpoint, " --out ", out)),
      AllOf(HasSubstr("'vision_config'"), HasSubstr("model.vision_tower.*"),
            HasSubstr("--manifest-from")));

  const ModelSpec biases = TinyModel("Qwen3Biases");
  const std::string config = FolderOf(biases), without = NewFolder();
  tools::WriteTensors(TunixTree(biases, HfTensors(biases)), without);
  const std::string command =
      absl::StrCat(without, " --from tunix --to hf --config ", config, " --out ", out);
  EXPECT_THAT(Error(command), AllOf(HasSubstr("8 HF tensors that this layout does not hold"),
                                    HasSubstr("q_proj.bias"), HasSubstr("--manifest-from")));
  EXPECT_THAT(NamesIn(out), IsEmpty());
  EXPECT_EQ(RunForJson(0, absl::StrCat("convert ", command, " --manifest-from ",
                                       config))["passed_through"],
            8);
  tools::ExpectTensors(out, HfTensors(biases));

  // That a checkpoint had MTP layers, nobody knows without it.
  const ModelSpec mtp = TinyModel("NextMtp"), next = TinyModel("Next");
  const std::string next_tree = NewFolder(), next_out = NewFolder();
  tools::WriteTensors(MaxTextTree(next, HfTensors(next), {}), next_tree);
  EXPECT_EQ(RunForJson(0, absl::StrCat("convert ", next_tree, " --from maxtext --to hf --config ",
                                       FolderOf(mtp), " --out ", next_out))["parts_left_away"],
            json({"mtp."}));
  tools::ExpectTensors(next_out, HfTensors(next));
}

TEST(ConvertTest, SaysWhatIsWrongAndLeavesNothing) {
  const ModelSpec model = TinyModel("Moe");
  const std::string checkpoint = FolderOf(model), parent = NewFolder(), tree = NewFolder();
  const std::string to = absl::StrCat(" --config ", checkpoint, " --out ", parent, "/out");
  std::vector<Elements> tensors = TunixTree(model, HfTensors(model));
  tensors[2].name = "layers.0.unknown";
  tools::WriteTensors(tensors, tree);
  EXPECT_THAT(Error(absl::StrCat(tree, " --from tunix --to hf", to)),
              AllOf(HasSubstr("1 missing: "), HasSubstr("layers.0.unknown")));
  EXPECT_THAT(Error(absl::StrCat(checkpoint, " --from hf-fused --to tunix", to)),
              HasSubstr("experts.gate_up_proj"));
  const std::string fused = NewFolder();
  tools::WriteModel(model, HfFused(model, HfTensors(model)), fused);
  EXPECT_THAT(Error(absl::StrCat(fused, " --from hf --to tunix", to)),
              HasSubstr("that is --from hf-fused"));
  EXPECT_THAT(Error(absl::StrCat(checkpoint, " --from hf --to maxtext:scanned,period=3", to)),
              HasSubstr("scan_period is 3"));
  EXPECT_THAT(Error(absl::StrCat("/nowhere --from hf --to tunix", to)), HasSubstr("'/nowhere'"));
  EXPECT_THAT(Error(absl::StrCat(checkpoint, " --from hf --to tunix --config /nowhere --out ",
                                 parent, "/out")),
              HasSubstr("'/nowhere'"));
  EXPECT_THAT(NamesIn(parent), IsEmpty());
  EXPECT_THAT(Error(absl::StrCat(checkpoint, " --from hf --to tunix --config ", checkpoint,
                                 " --out ", tree)),
              HasSubstr("not empty"));
  EXPECT_THAT(NamesIn(tree), ElementsAre("model.safetensors"));
}

// A head that differs is found when the first file was made already.
TEST(ConvertTest, AFailureWhileItWritesLeavesNothing) {
  const ModelSpec model = TinyModel("Qwen3TiedHeadOnDisk");
  std::vector<Elements> tensors = HfTensors(model);
  for (Elements& tensor : tensors) {
    if (tensor.name == "lm_head.weight") tensor.ids[5] += 1;
  }
  const std::string checkpoint = NewFolder(), parent = NewFolder();
  tools::WriteModel(model, tensors, checkpoint);
  for (const char* to : {"tunix", "hf"}) {
    EXPECT_THAT(Error(absl::StrCat(checkpoint, " --from hf --to ", to, " --config ", checkpoint,
                                   " --out ", parent, "/out")),
                HasSubstr("'lm_head.weight'"));
    EXPECT_THAT(NamesIn(parent), IsEmpty());
  }
}

// The limit of a file's size stands for a full disk.
TEST(ConvertTest, AFullDiskLeavesNothing) {
  const std::string checkpoint = FolderOf(TinyModel("Moe")), parent = NewFolder();
  const json report =
      RunForJson(1,
                 absl::StrCat("convert ", checkpoint, " --from hf --to tunix --config ", checkpoint,
                              " --out ", parent, "/out"),
                 "trap '' XFSZ && ulimit -f 2");
  EXPECT_THAT(report.value("error", ""), HasSubstr("allocate"));
  EXPECT_THAT(NamesIn(parent), IsEmpty());
}

// The members are a promise: programs read them.
TEST(ConvertTest, JsonHasTheDocumentedForm) {
  const ModelSpec model = TinyModel("Qwen3Biases");
  const std::string checkpoint = FolderOf(model), out = NewFolder();
  json report =
      RunForJson(0, absl::StrCat("convert ", checkpoint, " --from hf --to tunix --config ",
                                 checkpoint, " --out ", out));
  EXPECT_GT(report["seconds"], 0);
  report["seconds"] = 0;
  json left_out = json::array();
  for (const char* layer : {"0", "1"}) {
    for (const char* name : {"k_proj", "o_proj", "q_proj", "v_proj"}) {
      left_out.push_back(absl::StrCat("model.layers.", layer, ".self_attn.", name, ".bias"));
    }
  }
  EXPECT_EQ(report, (json{{"format", 1},
                          {"ok", true},
                          {"in", checkpoint},
                          {"from", "hf"},
                          {"out", out},
                          {"to", "tunix"},
                          {"tensors", model.tensors - 8},
                          {"bytes", 2 * (model.elements - int64_t{2} * 32)},
                          {"files", 1},
                          {"rounded", 0},
                          {"passed_through", 0},
                          {"left_out", left_out},
                          {"zeros", json::array()},
                          {"parts_left_away", json::array()},
                          {"seconds", 0}}));
}

TEST(ConvertTest, TellsAPersonWhatWasLeftOut) {
  const std::string checkpoint = FolderOf(TinyModel("NextMtp")), out = NewFolder();
  EXPECT_THAT(RunCommand(absl::StrCat("convert ", checkpoint, " --from hf --to maxtext --config ",
                                      checkpoint, " --out ", out))
                  .output,
              AllOf(HasSubstr("26 tensors that this layout does not hold"),
                    HasSubstr("\n                mtp."), HasSubstr("\n                ...\n"),
                    HasSubstr("--manifest-from")));
}

TEST(ConvertTest, WrongUsageHasAStatusOfItsOwn) {
  const auto usage = [](const std::string& arguments) {
    const base::ProgramResult result = RunCommand("convert /in --config /c --out /o " + arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    return result.output;
  };
  EXPECT_THAT(usage("--from hf"), HasSubstr("--to"));
  EXPECT_THAT(usage("--from hf --to megatron"), HasSubstr("there are hf, hf-fused, tunix"));
  EXPECT_THAT(usage("--from hf --to tunix --max-shard-bytes 0"), HasSubstr("max-shard-bytes"));
  EXPECT_THAT(usage("--from hf --to tunix --max-shard-bytes 5XB"), HasSubstr("max-shard-bytes"));
  EXPECT_THAT(usage("--from hf --to tunix --manifest-from /x"), HasSubstr("--manifest-from"));
  EXPECT_THAT(usage("--from tunix --to hf --master-dtype float32"), HasSubstr("--master-dtype"));
}

}  // namespace
}  // namespace weight_sync::convert
