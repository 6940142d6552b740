// Copyright 2026 The weight_sync Authors.
// SPDX-License-Identifier: Apache-2.0

#include "refit/checkpoint/pending_checkpoint.h"

#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/status_matchers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refit/checkpoint/checkpoint.h"
#include "refit/checkpoint/named_tensor.h"
#include "refit/checkpoint/safetensors_writer.h"
#include "refit/checkpoint/test_files.h"
#include "refit/refit_info.h"
#include "refit/tensor/dtype.h"

namespace weight_sync::refit {
namespace {

using ::absl_testing::IsOk;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kOneFile = 1 << 20;

// Of several types, one without elements, in no order that the format would keep.
TestTensors Tensors() {
  TestTensors tensors(7);
  tensors.Add("model.norm.weight", DType::kBF16, {5});
  tensors.Add("a.scale", DType::kF32, {3, 2});
  tensors.Add("model.embed_tokens.weight", DType::kBF16, {7, 5});
  tensors.Add("empty", DType::kBF16, {0, 4});
  tensors.Add("flag", DType::kU8, {1});
  tensors.Add("scalar", DType::kF32, {});
  return tensors;
}

std::vector<TensorSpec> Specs(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const NamedTensor& t : tensors) {
    specs.push_back({t.name, t.tensor.shape(), t.tensor.dtype()});
  }
  return specs;
}

void Fill(const std::vector<NamedTensor>& from, const PendingCheckpoint& pending) {
  for (size_t i = from.size(); i-- > 0;) {  // in any order
    const MutableTensorView& to = pending.tensors()[i];
    ASSERT_EQ(to.num_bytes(), from[i].tensor.num_bytes());
    if (to.num_bytes() == 0) continue;
    std::memcpy(to.data(), from[i].tensor.data(), static_cast<size_t>(to.num_bytes()));
  }
}

std::map<std::string, std::string> Contents(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const std::string& name : ListTestDirectory(directory)) {
    contents[name] = ReadTestFile(absl::StrCat(directory, "/", name));
  }
  return contents;
}

TEST(PendingCheckpointTest, FilesAreThoseThatTheWriterWrites) {
  const TestTensors input = Tensors();
  for (const int64_t max_shard_bytes : {int64_t{1}, int64_t{40}, kOneFile}) {
    const std::string expected = NewTestDirectory(), made = NewTestDirectory();
    const std::map<std::string, std::string> metadata = {{"format", "pt"}};
    ASSERT_THAT(WriteShardedSafetensors(expected, input.tensors(), max_shard_bytes, metadata),
                IsOk());
    auto pending =
        PendingCheckpoint::Create(made, Specs(input.tensors()), max_shard_bytes, metadata);
    ASSERT_THAT(pending, IsOk());
    Fill(input.tensors(), *pending);
    const int files = pending->num_files();
    ASSERT_THAT(pending->Publish(), IsOk());
    EXPECT_EQ(Contents(made), Contents(expected)) << max_shard_bytes;
    EXPECT_EQ(ListTestDirectory(made).size(), static_cast<size_t>(files == 1 ? 1 : files + 1));
  }
}

TEST(PendingCheckpointTest, WhatIsNotWrittenIsZero) {
  const std::string directory = NewTestDirectory();
  auto pending = PendingCheckpoint::Create(directory, Specs(Tensors().tensors()), kOneFile);
  ASSERT_THAT(pending, IsOk());
  ASSERT_THAT(pending->Publish(), IsOk());
  const auto read = Checkpoint::Open(directory);
  ASSERT_THAT(read, IsOk());
  for (const NamedTensor& t : read->tensors()) EXPECT_THAT(LogicalBytes(t.tensor), Each('\0'));
}

TEST(PendingCheckpointTest, NothingIsSeenBeforeItIsPublishedNorLeftWithoutThat) {
  const std::string directory = NewTestDirectory();
  {
    auto pending = PendingCheckpoint::Create(directory, Specs(Tensors().tensors()), 40);
    ASSERT_THAT(pending, IsOk());
    EXPECT_THAT(ListTestDirectory(directory), Each(HasSubstr(".weight_sync-")));
    const PendingCheckpoint moved = *std::move(pending);
    Fill(Tensors().tensors(), moved);
  }
  EXPECT_THAT(ListTestDirectory(directory), IsEmpty());
}

TEST(PendingCheckpointTest, RefusesWhatTheWriterRefuses) {
  const std::string directory = NewTestDirectory();
  const TensorSpec tensor = {"w", {2}, DType::kBF16};
  EXPECT_THAT(PendingCheckpoint::Create(directory, {tensor, tensor}, kOneFile),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 'w': given twice")));
  EXPECT_THAT(PendingCheckpoint::Create(directory, {tensor}, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_shard_bytes is 0")));
  EXPECT_THAT(PendingCheckpoint::Create(directory + "/absent", {tensor}, kOneFile),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/absent'")));
  WriteTestFile(directory + "/old.safetensors", "");
  EXPECT_THAT(PendingCheckpoint::Create(directory, {tensor}, kOneFile),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("old.safetensors")));
  EXPECT_THAT(ListTestDirectory(directory), ElementsAre("old.safetensors"));
}

TEST(PendingCheckpointTest, ALackOfSpaceIsAnErrorBeforeAnythingIsWritten) {
  const std::string directory = NewTestDirectory();
  // The limit of a file's size stands for a full disk.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
  const absl::Cleanup restore = [&] {
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
  };
  const struct rlimit limit = {1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::vector<TensorSpec> tensors = {{"small", {16}, DType::kU8},
                                           {"large", {2 << 20}, DType::kU8}};
  EXPECT_THAT(PendingCheckpoint::Create(directory, tensors, 100),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("allocate"), HasSubstr("model-00002-of-00002"))));
  EXPECT_THAT(ListTestDirectory(directory), IsEmpty());
}

}  // namespace
}  // namespace weight_sync::refit
