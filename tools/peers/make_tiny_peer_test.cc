// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tiny checkpoints that other peer tests build on: every family, as this project's reader, the
// safetensors library and transformers see it. Needs `tools/peers/setup torch`.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "refit/tensor/dtype.h"
#include "tools/peers/peer_environment.h"
#include "tools/peers/tiny_checkpoint.h"

namespace weight_sync::peers {
namespace {

using ::absl_testing::IsOk;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;

// How many tensors each family has, and names that show that it is laid out as it is published.
struct Family {
  size_t tensors;
  std::vector<std::string> names;
};

const std::map<std::string, Family>& Families() {
  static const auto* const families = new std::map<std::string, Family>{
      {"llama", {21, {"lm_head.weight", "model.layers.1.self_attn.o_proj.weight"}}},
      {"llama_tied", {20, {"model.embed_tokens.weight"}}},
      {"qwen2", {27, {"lm_head.weight", "model.layers.0.self_attn.q_proj.bias"}}},
      {"qwen2_tied", {26, {"model.layers.0.self_attn.v_proj.bias"}}},
      {"qwen3", {25, {"lm_head.weight", "model.layers.0.self_attn.k_norm.weight"}}},
      {"qwen3_tied", {24, {"model.layers.0.self_attn.q_norm.weight"}}},
      {"qwen3_moe", {45, {"model.layers.1.mlp.experts.3.gate_proj.weight"}}},
      {"qwen3_next",
       {106,
        {"model.layers.0.linear_attn.in_proj_qkvz.weight", "model.layers.0.linear_attn.A_log"}}},
      {"qwen3_next_two_blocks", {209, {"model.layers.7.self_attn.q_norm.weight"}}},
      {"gemma4",
       {98,
        {"model.embed_tokens_per_layer.weight", "model.layers.5.layer_scalar",
         "model.layers.0.per_layer_input_gate.weight"}}},
      {"gemma4_moe",
       {132,
        {"model.layers.0.experts.gate_up_proj", "model.layers.5.router.per_expert_scale",
         "model.layers.0.self_attn.v_proj.weight"}}},
      {"gemma4_multimodal",
       {107,
        {"model.language_model.layers.3.self_attn.k_proj.weight",
         "model.language_model.layers.4.self_attn.v_proj.weight",
         "model.language_model.layers.5.self_attn.k_norm.weight"}}},
      {"gemma4_moe_multimodal", {132, {"model.language_model.layers.2.experts.down_proj"}}},
  };
  return *families;
}

struct SeenTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;

  friend bool operator==(const SeenTensor& a, const SeenTensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
  }
};
using SeenTensors = std::map<std::string, SeenTensor>;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

SeenTensors SeenByUs(const std::string& directory) {
  const refit::Checkpoint checkpoint = refit::Checkpoint::Open(directory).value();
  SeenTensors seen;
  for (const refit::NamedTensor& t : checkpoint.tensors()) {
    const auto dims = t.tensor.shape().dims();
    seen[t.name] = {std::string(refit::SafetensorsName(t.tensor.dtype())),
                    {dims.begin(), dims.end()},
                    std::string(reinterpret_cast<const char*>(t.tensor.data()),
                                static_cast<size_t>(t.tensor.num_bytes()))};
  }
  return seen;
}

class MakeTinyPeerTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto environment = FindPeerEnvironment("torch");
    if (!environment.ok()) GTEST_SKIP() << environment.status();
    python_ = *environment + "/bin/python";
    const auto all = TinyCheckpoint("all", 1);
    ASSERT_THAT(all, IsOk());
    all_ = *all;
  }

  base::ProgramResult Python(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {python_, "-I", "tools/peers/make_tiny_peer.py"});
    return base::RunProgram(arguments);
  }

  std::map<std::string, SeenTensors> SeenByTheLibrary(std::vector<std::string> directories) {
    const std::string out = testing::TempDir() + "/dump";
    directories.insert(directories.begin(), {"dump", out});
    const base::ProgramResult dumped = Python(directories);
    EXPECT_EQ(dumped.exit_code, 0) << dumped.output;
    const std::string bytes = ReadFile(out + ".bin");
    const nlohmann::json checkpoints = nlohmann::json::parse(ReadFile(out + ".json"));
    std::map<std::string, SeenTensors> seen;
    for (const auto& [directory, tensors] : checkpoints.items()) {
      for (const nlohmann::json& t : tensors) {
        const size_t begin = t["begin"], end = t["end"];
        seen[directory][t["name"]] = {t["dtype"], t["shape"], bytes.substr(begin, end - begin)};
      }
    }
    return seen;
  }

  std::string python_;
  std::string all_;  // a directory with one checkpoint of every family
};

TEST_F(MakeTinyPeerTest, EveryFamilyIsReadAsTheLibraryReadsIt) {
  const base::ProgramResult listed = base::RunProgram({"tools/peers/make_tiny", "--list"});
  std::vector<std::string> names = absl::StrSplit(listed.output, '\n', absl::SkipEmpty());
  EXPECT_THAT(names, SizeIs(Families().size()));
  std::vector<std::string> directories;
  for (const std::string& name : names) directories.push_back(all_ + "/" + name);
  const std::map<std::string, SeenTensors> theirs = SeenByTheLibrary(directories);
  for (const auto& [family, expected] : Families()) {
    SCOPED_TRACE(family);
    EXPECT_THAT(names, Contains(family));
    const SeenTensors ours = SeenByUs(all_ + "/" + family);
    EXPECT_EQ(ours.size(), expected.tensors);
    for (const std::string& name : expected.names) EXPECT_THAT(ours, Contains(Key(name)));
    std::set<std::string> contents;
    for (const auto& [name, tensor] : ours) {
      EXPECT_EQ(tensor.dtype, "BF16") << name;
      EXPECT_TRUE(contents.insert(tensor.bytes).second) << name << " has another one's bytes";
    }
    EXPECT_TRUE(ours == theirs.at(all_ + "/" + family));
  }
}

TEST_F(MakeTinyPeerTest, TransformersLoadsEveryFamilyAndEachAnswersDifferently) {
  std::vector<std::string> arguments = {"load"};
  for (const auto& [family, expected] : Families()) arguments.push_back(all_ + "/" + family);
  const base::ProgramResult loaded = Python(arguments);
  ASSERT_EQ(loaded.exit_code, 0) << loaded.output;
  const std::vector<std::string> lines = absl::StrSplit(loaded.output, '\n', absl::SkipEmpty());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), Families().size())
      << loaded.output;
}

TEST_F(MakeTinyPeerTest, TheSameSeedGivesTheSameBytesAndAnotherSeedOthers) {
  const std::string alone = TinyCheckpoint("qwen3_moe", 1).value();
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"}) {
    const std::string bytes = ReadFile(absl::StrCat(alone, "/", file));
    EXPECT_FALSE(bytes.empty()) << file;
    EXPECT_TRUE(bytes == ReadFile(absl::StrCat(all_, "/qwen3_moe/", file))) << file;
  }
  const SeenTensors first = SeenByUs(alone);
  const SeenTensors second = SeenByUs(TinyCheckpoint("qwen3_moe", 2).value());
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [name, tensor] : first) {
    EXPECT_EQ(second.at(name).shape, tensor.shape);
    EXPECT_FALSE(second.at(name).bytes == tensor.bytes) << name;
  }
}

TEST_F(MakeTinyPeerTest, AShardSizeGivesSeveralFilesAndAnIndex) {
  const std::string sharded =
      TinyCheckpoint("qwen3_next", 1, {"--max-shard-size", "200KB"}).value();
  EXPECT_GT(refit::Checkpoint::Open(sharded)->shards().size(), 2);
  EXPECT_TRUE(std::filesystem::exists(sharded + "/model.safetensors.index.json"));
  EXPECT_TRUE(SeenByUs(sharded) == SeenByUs(all_ + "/qwen3_next"));
}

// A negative control of the check that no two tensors have equal bytes, which TinyCheckpoint's
// checkpoints have passed.
TEST_F(MakeTinyPeerTest, AFreshModelFailsTheCheck) {
  const std::string fresh = testing::TempDir() + "/fresh";
  const base::ProgramResult made = Python({"fresh", fresh});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const base::ProgramResult checked = base::RunProgram({"tools/peers/make_tiny", "--check", fresh});
  EXPECT_NE(checked.exit_code, 0);
  EXPECT_THAT(checked.output, AllOf(HasSubstr("equal bytes"), HasSubstr("model.norm.weight"),
                                    HasSubstr("model.layers.0.input_layernorm.weight")));
}

}  // namespace
}  // namespace weight_sync::peers
