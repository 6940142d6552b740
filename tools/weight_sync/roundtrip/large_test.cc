// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

// A checkpoint that is larger than the memory that the command may have: roundtrip and convert keep
// tensors in mapped files. RLIMIT_DATA proves it, since beyond it the kernel gives a process no
// private memory that it can write to.

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "base/testing/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/pending_checkpoint.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"
#include "tools/weight_sync/testing/tiny_files.h"

namespace weight_sync::roundtrip {
namespace {

using ::absl_testing::IsOk;
using ::nlohmann::json;
using refit::DType;
using refit::TensorSpec;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
// Far below the 1 GiB that is promised.
constexpr int64_t kLimitBytes = 256 * kMiB;

constexpr char kConfig[] = R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 4,
  "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
  "vocab_size": 220000, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

std::vector<TensorSpec> Tensors() {
  std::vector<TensorSpec> tensors = {{"model.embed_tokens.weight", {220000, 1024}, DType::kBF16}};
  for (int layer = 0; layer < 4; ++layer) {
    const auto add = [&](const char* name, const refit::Shape& shape) {
      tensors.push_back({absl::StrCat("model.layers.", layer, ".", name), shape, DType::kBF16});
    };
    add("input_layernorm.weight", {1024});
    add("self_attn.q_proj.weight", {2048, 1024});
    add("self_attn.k_proj.weight", {1024, 1024});
    add("self_attn.v_proj.weight", {1024, 1024});
    add("self_attn.o_proj.weight", {1024, 2048});
    add("self_attn.q_norm.weight", {128});
    add("self_attn.k_norm.weight", {128});
    add("post_attention_layernorm.weight", {1024});
    add("mlp.gate_proj.weight", {8192, 1024});
    add("mlp.up_proj.weight", {8192, 1024});
    add("mlp.down_proj.weight", {1024, 8192});
  }
  tensors.push_back({"model.norm.weight", {1024}, DType::kBF16});
  tensors.push_back({"lm_head.weight", {220000, 1024}, DType::kBF16});
  return tensors;
}

class LargeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ + "/config.json") << kConfig;
    const std::vector<TensorSpec> tensors = Tensors();
    auto pending = refit::PendingCheckpoint::Create(folder_, tensors, 500 * kMiB);
    ASSERT_THAT(pending, IsOk());
    uint64_t state = 1;
    for (const refit::MutableTensorView& tensor : pending->tensors()) {
      // Aligned, since there is one dtype; every element is different from its neighbours.
      auto* const words = reinterpret_cast<uint64_t*>(tensor.data());
      for (int64_t i = 0; i < tensor.num_bytes() / 8; ++i) {
        state += 0x9e3779b97f4a7c15;
        words[i] = state ^ (state >> 29);
      }
    }
    ASSERT_THAT(pending->Publish(), IsOk());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = tools::NewFolder();
  const std::string limit_ = absl::StrCat("ulimit -d ", kLimitBytes / 1024);
};

TEST_F(LargeTest, AnonymousMemoryStaysSmallWhateverTheCheckpointTakes) {
  const auto checkpoint = refit::Checkpoint::Open(folder_);
  ASSERT_THAT(checkpoint, IsOk());
  ASSERT_GT(checkpoint->total_bytes(), kGiB);
  const json report = tools::RunForJson(
      0, absl::StrCat("roundtrip ", folder_, " --layout tunix --scratch ", ::testing::TempDir()),
      limit_);
  EXPECT_EQ(report["bytes"], checkpoint->total_bytes());
  EXPECT_EQ(report["differ"], json::array());

  const std::string out = tools::NewFolder();
  const json converted = tools::RunForJson(
      0,
      absl::StrCat("convert ", folder_, " --from hf --to maxtext:scanned --config ", folder_,
                   " --out ", out),
      limit_);
  EXPECT_EQ(converted["bytes"], checkpoint->total_bytes());
  std::filesystem::remove_all(out);
}

// Without this the test above would prove nothing.
TEST(LimitTest, TheKernelKeepsIt) {
  base::testing::ChildProcess child([](base::testing::ChildProcess::Side&) {
    const struct rlimit limit = {static_cast<rlim_t>(kLimitBytes),
                                 static_cast<rlim_t>(kLimitBytes)};
    ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
    void* const memory = ::mmap(nullptr, static_cast<size_t>(kLimitBytes), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(memory, MAP_FAILED);
    EXPECT_EQ(errno, ENOMEM);
  });
  EXPECT_TRUE(child.Succeeded());
}

}  // namespace
}  // namespace weight_sync::roundtrip
