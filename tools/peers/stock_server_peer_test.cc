// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A stock vLLM and a stock SGLang serve a tiny Qwen3 on this machine's CPU, tell what later tests
// rely on, and leave nothing behind. Needs `tools/peers/setup torch vllm sglang`. A start takes half
// a minute and 4 GB, so each engine starts once.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/run_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "refit/tensor/tensor_view.h"
#include "tools/peers/peer_environment.h"
#include "tools/peers/stock_server.h"
#include "tools/peers/tiny_checkpoint.h"

namespace weight_sync::peers {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::IsOkAndHolds;
using ::testing::Contains;
using ::testing::Not;

constexpr char kFamily[] = "qwen3";
constexpr int kTokens = 12;
const std::vector<int>& Prompt() {
  static const auto* const prompt = new std::vector<int>{5, 6, 7, 8, 9};
  return *prompt;
}

using Tokens = std::vector<int>;

// What the reference, transformers, generates greedily from each checkpoint.
std::vector<Tokens> ReferenceTokens(const std::vector<std::string>& checkpoints) {
  std::vector<std::string> command = {FindPeerEnvironment("torch").value() + "/bin/python", "-I",
                                      "tools/peers/make_tiny_peer.py", "load"};
  command.insert(command.end(), checkpoints.begin(), checkpoints.end());
  const base::ProgramResult loaded = base::RunProgram(command);
  EXPECT_EQ(loaded.exit_code, 0) << loaded.output;
  std::vector<Tokens> tokens;
  for (const auto& line : absl::StrSplit(loaded.output, '\n', absl::SkipEmpty())) {
    tokens.emplace_back();
    for (const auto& word : absl::StrSplit(line, ' ')) {
      EXPECT_TRUE(absl::SimpleAtoi(word, &tokens.back().emplace_back())) << loaded.output;
    }
  }
  return tokens;
}

// The sha256, in hexadecimal digits, of the bytes of the checkpoint's tensors, one after another.
std::string Sha256(const std::string& checkpoint, const std::vector<std::string>& names) {
  const std::string path = testing::TempDir() + "/bytes";
  const refit::Checkpoint opened = refit::Checkpoint::Open(checkpoint).value();
  std::ofstream file(path, std::ios::binary);
  for (const std::string& name : names) {
    const refit::TensorView& tensor = opened.Find(name)->tensor;
    file.write(reinterpret_cast<const char*>(tensor.data()), tensor.num_bytes());
  }
  file.close();
  const base::ProgramResult result = base::RunProgram({"/usr/bin/sha256sum", path});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return result.output.substr(0, 64);
}

std::set<std::string> SharedMemory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

// The processes that mention `text` in their command line or environment.
std::vector<std::string> ProcessesWith(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!absl::ascii_isdigit(entry.path().filename().string()[0])) continue;
    for (const char* file : {"cmdline", "environ"}) {
      std::ifstream in(entry.path() / file);
      const std::string content(std::istreambuf_iterator<char>(in), {});
      if (absl::StrContains(content, text)) found.push_back(entry.path());
    }
  }
  return found;
}

class StockServerPeerTest : public testing::Test {
 protected:
  void Begin(const std::string& engine) {
    for (const std::string& name : {std::string("torch"), engine}) {
      const auto environment = FindPeerEnvironment(name);
      if (!environment.ok()) GTEST_SKIP() << environment.status();
      environment_ = *environment;
    }
    for (const int seed : {1, 2}) {
      const auto checkpoint = TinyCheckpoint(kFamily, seed);
      ASSERT_THAT(checkpoint, IsOk());
      checkpoints_.push_back(*checkpoint);
    }
  }

  // The tokens are the reference's, twice, and not those of the other checkpoint.
  void ExpectReferenceTokens(const StockServer& server) {
    const std::vector<Tokens> reference = ReferenceTokens(checkpoints_);
    ASSERT_EQ(reference.size(), 2);
    EXPECT_THAT(server.Generate(Prompt(), kTokens), IsOkAndHolds(reference[0]));
    EXPECT_THAT(server.Generate(Prompt(), kTokens), IsOkAndHolds(reference[0]));
    EXPECT_NE(reference[0], reference[1]);
  }

  void StopAndExpectNothingLeft(StockServer& server) {
    const std::string directory = server.directory();
    EXPECT_THAT(ProcessesWith(directory), Not(testing::IsEmpty()));  // the check below can see them
    EXPECT_THAT(server.Stop(), IsOk()) << server.Log();
    EXPECT_THAT(ProcessesWith(directory), testing::IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(directory));
    EXPECT_THAT(server.Exchange("GET", "/health", "").status(),
                absl_testing::StatusIs(absl::StatusCode::kUnavailable));
    for (const std::string& name : SharedMemory()) {
      EXPECT_THAT(shared_memory_before_, Contains(name)) << "left in /dev/shm";
    }
  }

  std::string environment_;
  std::vector<std::string> checkpoints_;  // of two seeds
  const std::set<std::string> shared_memory_before_ = SharedMemory();
};

TEST_F(StockServerPeerTest, VllmServesAndStops) {
  Begin("vllm");
  if (IsSkipped() || HasFatalFailure()) return;
  const auto started = StockServer::Start(VllmCommand(environment_, checkpoints_[0]));
  ASSERT_THAT(started, IsOk());
  StockServer& server = **started;
  ExpectReferenceTokens(server);

  EXPECT_EQ(server.Get("/version").value().at("version"), "0.32.0");
  EXPECT_EQ(server.Get("/weight_info").value().at("weight_version"), "default");
  EXPECT_EQ(server.Get("/get_world_size").value().at("world_size"), 1);
  const nlohmann::json routes = server.Get("/openapi.json").value().at("paths");
  for (const char* route :
       {"/pause", "/resume", "/is_paused", "/abort_requests", "/sleep", "/wake_up", "/is_sleeping",
        "/collective_rpc", "/init_weight_transfer_engine", "/shutdown_weight_transfer_engine",
        "/start_weight_update", "/update_weights", "/finish_weight_update",
        "/update_weight_version", "/weight_checker"}) {
    EXPECT_TRUE(routes.contains(route)) << route;
  }
  EXPECT_THAT(server.Post("/pause?mode=keep", nullptr), IsOk());
  EXPECT_EQ(server.Get("/is_paused").value().at("is_paused"), true);
  EXPECT_THAT(server.Post("/resume", nullptr), IsOk());
  EXPECT_EQ(server.Get("/is_paused").value().at("is_paused"), false);

  // Its checker gives the sha256 of what it holds, by its own names.
  const nlohmann::json checksums =
      server.Post("/weight_checker", {{"action", "checksum"}}).value().at("checksums");
  const auto held = [&](const std::string& name) {
    return checksums.at(absl::StrCat("dp0:pp0:pcp0:tp0:", name)).get<std::string>();
  };
  for (const std::string name : {"model.embed_tokens.weight", "model.norm.weight"}) {
    EXPECT_EQ(held(name), Sha256(checkpoints_[0], {name})) << name;
    EXPECT_NE(held(name), Sha256(checkpoints_[1], {name})) << name;
  }
  // It cannot tell what a CPU's linear layers hold: their weights were packed elsewhere.
  EXPECT_EQ(held("model.layers.0.self_attn.qkv_proj.weight"), Sha256(checkpoints_[0], {}));

  StopAndExpectNothingLeft(server);
}

TEST_F(StockServerPeerTest, SglangServesAndStops) {
  Begin("sglang");
  if (IsSkipped() || HasFatalFailure()) return;
  const auto started = StockServer::Start(SglangCommand(environment_, checkpoints_[0]));
  ASSERT_THAT(started, IsOk());
  StockServer& server = **started;
  ExpectReferenceTokens(server);

  EXPECT_EQ(server.Get("/server_info").value().at("version"), "0.5.23");
  const nlohmann::json routes = server.Get("/openapi.json").value().at("paths");
  for (const char* route :
       {"/pause_generation", "/continue_generation", "/begin_weight_update", "/end_weight_update",
        "/update_weights_from_tensor", "/flush_cache", "/release_memory_occupation",
        "/resume_memory_occupation", "/weights_checker"}) {
    EXPECT_TRUE(routes.contains(route)) << route;
  }

  // Its checker gives the beginning of the sha256 of every parameter, where q, k and v are one.
  const nlohmann::json checksums = server.Post("/weights_checker", {{"action", "checksum"}})
                                       .value()
                                       .at("ranks")
                                       .at(0)
                                       .at("checksums");
  const std::string prefix = "model.layers.1.";
  const std::vector<std::pair<std::string, std::vector<std::string>>> parameters = {
      {"self_attn.qkv_proj",
       {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}},
      {"mlp.gate_up_proj", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}},
      {"mlp.down_proj", {"mlp.down_proj.weight"}},
      {"input_layernorm", {"input_layernorm.weight"}}};
  for (const auto& [parameter, parts] : parameters) {
    std::vector<std::string> names;
    for (const std::string& part : parts) names.push_back(prefix + part);
    const std::string held = checksums.at(absl::StrCat(prefix, parameter, ".weight"));
    EXPECT_EQ(held.size(), 16);
    EXPECT_EQ(held, Sha256(checkpoints_[0], names).substr(0, 16)) << parameter;
    EXPECT_NE(held, Sha256(checkpoints_[1], names).substr(0, 16)) << parameter;
  }

  StopAndExpectNothingLeft(server);
}

}  // namespace
}  // namespace weight_sync::peers
